// The fast back-end: intel-ipsec-mb, for CPUs with VAES and AVX-512. The calls used here are the same in its versions 1.3 to 2.x.
#include "crypto/aead_cipher.h"

#if defined(NEXAR_HAVE_IPSEC_MB)

#include <array>
#include <cstdint>

#include <intel-ipsec-mb.h>

#include "crypto/secret.h"

namespace nexar::crypto {
namespace {

static_assert(IMB_VERSION_NUM >= IMB_VERSION(1, 3, 0), "older versions do not test themselves when they start");

const std::uint8_t* bytes_of(base::ByteView view) { return reinterpret_cast<const std::uint8_t*>(view.data()); }
std::uint8_t* bytes_of(base::ByteSpan span) { return reinterpret_cast<std::uint8_t*>(span.data()); }

bool is_fast_and_sound(const IMB_MGR& manager) {
  constexpr std::uint64_t kNeeded = IMB_FEATURE_AVX512_SKX | IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ;
  const bool tested = (manager.features & IMB_FEATURE_SELF_TEST) == 0 || (manager.features & IMB_FEATURE_SELF_TEST_PASS) != 0;
  return (manager.features & kNeeded) == kNeeded && tested;
}

// Null where the CPU lacks VAES or AVX-512: GnuTLS is as fast there.
IMB_MGR* make_manager() {
  IMB_MGR* manager = alloc_mb_mgr(0);
  if (manager == nullptr) return nullptr;
  IMB_ARCH architecture = IMB_ARCH_NONE;
  init_mb_mgr_auto(manager, &architecture);
  if (architecture >= IMB_ARCH_AVX512 && imb_get_errno(manager) == 0 && is_fast_and_sound(*manager)) return manager;
  free_mb_mgr(manager);
  return nullptr;
}

// The table of functions for this CPU. The direct calls keep no state in it, so all threads share it; it is never freed, because a thread
// may still seal while the process exits.
IMB_MGR* manager() {
  static IMB_MGR* const shared = make_manager();
  return shared;
}

class IpsecMbCipher final : public AeadCipher {
 public:
  explicit IpsecMbCipher(base::ByteView key) { IMB_AES128_GCM_PRE(manager_, key.data(), &key_); }
  IpsecMbCipher(const IpsecMbCipher&) = delete;
  IpsecMbCipher& operator=(const IpsecMbCipher&) = delete;
  ~IpsecMbCipher() override { wipe(std::as_writable_bytes(std::span(&key_, 1))); }

  void seal(base::ByteSpan out, std::span<const base::ByteView> plain, const Nonce& nonce, base::ByteView aad) const override {
    gcm_context_data context;
    std::uint8_t* to = bytes_of(out);
    if (plain.size() == 1) {
      IMB_AES128_GCM_ENC(manager_, &key_, &context, to, bytes_of(plain[0]), plain[0].size(), bytes_of(nonce), bytes_of(aad), aad.size(),
                         to + plain[0].size(), kAeadTagBytes);
      return;
    }
    IMB_AES128_GCM_INIT(manager_, &key_, &context, bytes_of(nonce), bytes_of(aad), aad.size());
    for (const base::ByteView region : plain) {
      IMB_AES128_GCM_ENC_UPDATE(manager_, &key_, &context, to, bytes_of(region), region.size());
      to += region.size();
    }
    IMB_AES128_GCM_ENC_FINALIZE(manager_, &key_, &context, to, kAeadTagBytes);
  }

  bool open(std::span<const base::ByteSpan> out, base::ByteView sealed, const Nonce& nonce, base::ByteView aad) const override {
    gcm_context_data context;
    std::array<std::byte, kAeadTagBytes> tag;
    const std::uint8_t* from = bytes_of(sealed);
    if (out.size() == 1) {
      IMB_AES128_GCM_DEC(manager_, &key_, &context, bytes_of(out[0]), from, out[0].size(), bytes_of(nonce), bytes_of(aad), aad.size(),
                         bytes_of(base::ByteSpan(tag)), tag.size());
    } else {
      IMB_AES128_GCM_INIT(manager_, &key_, &context, bytes_of(nonce), bytes_of(aad), aad.size());
      for (const base::ByteSpan region : out) {
        IMB_AES128_GCM_DEC_UPDATE(manager_, &key_, &context, bytes_of(region), from, region.size());
        from += region.size();
      }
      IMB_AES128_GCM_DEC_FINALIZE(manager_, &key_, &context, bytes_of(base::ByteSpan(tag)), tag.size());
    }
    return equal_constant_time(tag, sealed.last(kAeadTagBytes));
  }

 private:
  IMB_MGR* const manager_ = manager();
  alignas(64) gcm_key_data key_;  // AVX-512 loads it a cache line at a time
};

}  // namespace

bool ipsec_mb_is_available() { return manager() != nullptr; }

std::unique_ptr<const AeadCipher> make_ipsec_mb_cipher(base::ByteView key) {
  if (!ipsec_mb_is_available()) return nullptr;
  return std::make_unique<IpsecMbCipher>(key);
}

}  // namespace nexar::crypto

#else

namespace nexar::crypto {

bool ipsec_mb_is_available() { return false; }

std::unique_ptr<const AeadCipher> make_ipsec_mb_cipher(base::ByteView /*key*/) { return nullptr; }

}  // namespace nexar::crypto

#endif

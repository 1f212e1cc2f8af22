#include "crypto/header_mask.h"

#include <array>
#include <cstring>
#include <mutex>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/assert.h"
#include "crypto/gnutls_data.h"
#include "crypto/secret.h"

namespace nexar::crypto {

constexpr std::size_t kBlockBytes = 16;
using Block = std::array<std::byte, kBlockBytes>;

// AES-128 of one block. Thread: any, several at once. Owned by its HeaderMask.
class BlockCipher {
 public:
  BlockCipher() = default;
  BlockCipher(const BlockCipher&) = delete;
  BlockCipher& operator=(const BlockCipher&) = delete;
  virtual ~BlockCipher() = default;
  virtual Block encrypt(std::span<const std::byte, kBlockBytes> block) const = 0;
};

namespace {

// GnuTLS offers no single block; CBC from a vector of zeros is the same for the first one. A handle serves one thread at a time.
class GnuTlsBlockCipher final : public BlockCipher {
 public:
  explicit GnuTlsBlockCipher(base::ByteView key) {
    const gnutls_datum_t key_datum = datum(key);
    const gnutls_datum_t vector = datum(kZeros);
    NEXAR_ASSERT(gnutls_cipher_init(&handle_, GNUTLS_CIPHER_AES_128_CBC, &key_datum, &vector) == GNUTLS_E_SUCCESS, "GnuTLS has AES-128");
  }
  GnuTlsBlockCipher(const GnuTlsBlockCipher&) = delete;
  GnuTlsBlockCipher& operator=(const GnuTlsBlockCipher&) = delete;
  ~GnuTlsBlockCipher() override { gnutls_cipher_deinit(handle_); }

  Block encrypt(std::span<const std::byte, kBlockBytes> block) const override {
    Block out;
    Block zeros = kZeros;
    const std::lock_guard lock(mutex_);
    gnutls_cipher_set_iv(handle_, zeros.data(), zeros.size());
    const int status = gnutls_cipher_encrypt2(handle_, block.data(), block.size(), out.data(), out.size());
    NEXAR_ASSERT(status == GNUTLS_E_SUCCESS, "encrypting a whole block fails for no content");
    return out;
  }

 private:
  static constexpr Block kZeros{};
  mutable std::mutex mutex_;
  gnutls_cipher_hd_t handle_ = nullptr;
};

#if defined(__x86_64__)

#define NEXAR_AES_INSTRUCTIONS __attribute__((target("aes,sse2")))

// The next round key: the words of the last one summed up from the left, and the transformed last word, which keygenassist gives, on each.
template <int kRoundConstant>
NEXAR_AES_INSTRUCTIONS __m128i next_round_key(__m128i key) {
  const __m128i assist = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(key, kRoundConstant), 0xff);
  key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
  key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
  return _mm_xor_si128(key, assist);
}

class AesInstructionsCipher final : public BlockCipher {
 public:
  explicit AesInstructionsCipher(base::ByteView key) { expand(key); }
  AesInstructionsCipher(const AesInstructionsCipher&) = delete;
  AesInstructionsCipher& operator=(const AesInstructionsCipher&) = delete;
  ~AesInstructionsCipher() override { wipe(std::as_writable_bytes(std::span(round_keys_))); }

  NEXAR_AES_INSTRUCTIONS Block encrypt(std::span<const std::byte, kBlockBytes> block) const override {
    __m128i state = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block.data())), round_key(0));
    for (std::size_t round = 1; round < kRounds; ++round) state = _mm_aesenc_si128(state, round_key(round));
    state = _mm_aesenclast_si128(state, round_key(kRounds));
    Block out;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out.data()), state);
    return out;
  }

 private:
  static constexpr std::size_t kRounds = 10;

  NEXAR_AES_INSTRUCTIONS void expand(base::ByteView key) {
    __m128i last = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key.data()));
    keep(0, last);
    keep(1, last = next_round_key<0x01>(last));
    keep(2, last = next_round_key<0x02>(last));
    keep(3, last = next_round_key<0x04>(last));
    keep(4, last = next_round_key<0x08>(last));
    keep(5, last = next_round_key<0x10>(last));
    keep(6, last = next_round_key<0x20>(last));
    keep(7, last = next_round_key<0x40>(last));
    keep(8, last = next_round_key<0x80>(last));
    keep(9, last = next_round_key<0x1b>(last));
    keep(10, next_round_key<0x36>(last));
  }

  void keep(std::size_t round, __m128i key) { _mm_store_si128(reinterpret_cast<__m128i*>(round_keys_[round].data()), key); }
  __m128i round_key(std::size_t round) const { return _mm_load_si128(reinterpret_cast<const __m128i*>(round_keys_[round].data())); }

  alignas(16) std::array<Block, kRounds + 1> round_keys_;
};

bool has_aes_instructions() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("aes") != 0;
}

std::unique_ptr<const BlockCipher> make_fast_cipher(base::ByteView key) { return std::make_unique<AesInstructionsCipher>(key); }

#else

bool has_aes_instructions() { return false; }

std::unique_ptr<const BlockCipher> make_fast_cipher(base::ByteView /*key*/) { return nullptr; }

#endif

std::unique_ptr<const BlockCipher> make_cipher(base::ByteView key, MaskEngine engine) {
  NEXAR_ASSERT(key.size() == kHeaderMaskKeyBytes, "AES-128 has a key of 16 bytes");
  NEXAR_ASSERT(is_available(engine), "an engine is asked for only where it is available");
  if (engine == MaskEngine::kAesInstructions) return make_fast_cipher(key);
  return std::make_unique<GnuTlsBlockCipher>(key);
}

}  // namespace

bool is_available(MaskEngine engine) { return engine == MaskEngine::kGnuTls || has_aes_instructions(); }

MaskEngine mask_engine() { return has_aes_instructions() ? MaskEngine::kAesInstructions : MaskEngine::kGnuTls; }

HeaderMask::HeaderMask(base::ByteView key, MaskEngine engine) : cipher_(make_cipher(key, engine)) {}
HeaderMask::HeaderMask(HeaderMask&&) noexcept = default;
HeaderMask& HeaderMask::operator=(HeaderMask&&) noexcept = default;
HeaderMask::~HeaderMask() = default;

void HeaderMask::mask(std::span<std::byte, kHeaderMaskBytes> out, std::span<const std::byte, kHeaderSampleBytes> sample) const {
  const Block block = cipher_->encrypt(sample);
  std::memcpy(out.data(), block.data(), out.size());
}

}  // namespace nexar::crypto

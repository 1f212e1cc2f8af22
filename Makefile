# Two commands do everything on a fresh machine: `make run` and `make test`. `make help` lists the rest.

# One more than cores: many tests wait for something most of the time.
export CTEST_PARALLEL_LEVEL ?= $(shell expr $$(nproc) + 1)

SOURCES = $(shell git ls-files '*.h' '*.cc')

# `make bench QUICK=1` takes fewer sizes, rounds and iterations: minutes instead of half an hour.
QUICK ?=
quick = $(if $(filter-out 0,$(QUICK)),--quick)

.PHONY: help packages build run test test-long bench peers asan tsan clang fuzz format lint clean

help:
	@echo 'make run        install what is missing, build, and run a checked all_reduce of four processes'
	@echo 'make test       build and run the tests, plain and with AddressSanitizer and UndefinedBehaviorSanitizer'
	@echo 'make test-long  the tests that take minutes'
	@echo 'make build      the tool at build/release/bin/nexar and the libraries in build/release/lib'
	@echo 'make bench      reductions beside memcpy; collectives beside Open MPI, MPICH and Gloo, on this host and on a 10 Gbit/s line (as root); QUICK=1: short'
	@echo 'make peers      install Open MPI, MPICH and Gloo, and build what measures them'
	@echo 'make asan       build and test with AddressSanitizer and UndefinedBehaviorSanitizer alone'
	@echo 'make tsan       build and test with ThreadSanitizer'
	@echo 'make clang      build and test with clang'
	@echo 'make fuzz       fuzz every decoder with libFuzzer, a minute each'
	@echo 'make format     lay out the sources with clang-format'
	@echo 'make lint       read the sources with clang-tidy'
	@echo 'make clean      remove build/'

packages:
	@scripts/install_packages build

# `make built-PRESET` brings the build of a preset up to date. ninja may have come with the packages just now, so it is looked for again.
built-%: packages
	@mkdir -p build
	@if command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi; \
	  [ -e build/$*/CMakeCache.txt ] || cmake --preset $* -D NEXAR_PRECOMPILE=ON >build/$*.log 2>&1 || { rm -f build/$*/CMakeCache.txt; cat build/$*.log; exit 1; }
	@cmake --build --preset $* --parallel

build: built-release

run: build
	@echo; build/release/bin/nexar info; echo
	@build/release/bin/nexar bench all_reduce -n 4 --check --bytes 8,64K,1M,16M; echo
	@build/release/bin/nexar bench all_reduce -n 4 --check --bytes 8,64K,1M,16M --transport net; echo
	@echo 'Four processes joined a seed with a token, became ranks, and added up their buffers: first through shared memory, then over encrypted QUIC and TCP as'
	@echo 'between hosts. Every element of every rank was compared with a serial sum (#wrong).'

test: built-release built-asan
	@python3 scripts/run_tests.py release asan

test-long: built-release
	@python3 scripts/run_tests.py --long release

bench: peers
	@python3 bench/reduce/summary.py $(quick) --json build/reduce.json build/release/bin/bench_reduce
	@echo; echo 'Collectives on this host, as ranks of one host talk by default:'
	@python3 bench/peers/collectives.py --op all --transport auto $(quick) --json build/same-host.json
	@python3 bench/peers/plot.py build/same-host.json build/same-host.svg
	@echo; if [ "$$(id -u)" = 0 ] && ip netns add nexar-try-$$$$ 2>/dev/null && ip netns del nexar-try-$$$$; then \
	  echo 'Collectives between two network namespaces on a line of 10 Gbit/s:' && \
	  python3 bench/peers/collectives.py --op all --rate 10gbit --mtu 1500 $(quick) --json build/line.json && \
	  python3 bench/peers/plot.py build/line.json build/line.svg; \
	else echo 'Without the line of 10 Gbit/s: it is made of network namespaces, which need root (sudo make bench).'; fi
	@echo; echo 'Rows and pictures:' build/*.json build/*.svg
	@echo 'bench/compare OLD.json NEW.json says what became faster or slower between two runs.'

peers:
	@scripts/install_packages build peers
	@[ ! -e build/release/CMakeCache.txt ] || cmake --preset release >build/release.log 2>&1 || { cat build/release.log; exit 1; }
	@$(MAKE) --no-print-directory build

asan tsan: %: built-%
	@python3 scripts/run_tests.py $*

clang: lint-packages built-clang
	@python3 scripts/run_tests.py clang

fuzz: lint-packages built-clang
	@ctest --preset clang -R '^fuzz\.'

.PHONY: lint-packages
lint-packages:
	@scripts/install_packages build lint

format: lint-packages
	@clang-format -i $(SOURCES)

lint: lint-packages
	@mkdir -p build
	@cmake --preset clang >build/clang.log 2>&1 || { cat build/clang.log; exit 1; }
	@clang-format --dry-run --Werror $(SOURCES)
	@run-clang-tidy -quiet -p build/clang '$(CURDIR)/(src|tools|tests|bench)/.*\.cc' >build/lint.log 2>&1 || { grep -E 'warning|error|note' build/lint.log; exit 1; }
	@echo 'lint: nothing found'

clean:
	@rm -rf build

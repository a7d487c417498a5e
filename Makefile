# randflake for PostgreSQL: build, install and test with PGXS.
#
#   make                 build against the server of PG_CONFIG
#   make install         install the library and the three extensions
#   make installcheck    regression tests against a running, configured server
#   make tempcheck       regression and TAP tests, each on a server of its own
#   make soak            500 crashes under load, or ROUNDS=n
#   make unit            unit tests of src/core (no server)
#   make dist            archives of the last commit in build/
#   make fuzz            fuzz targets of src/core; FUZZ_SECONDS=n for each of them
#   make coverage        lists the lines that tests reach; see scripts/coverage.sh
#   make lint            clang's warnings, clang-tidy and cppcheck over src; TIDY_CHECKS adds checks
#   make format          clang-format every source file; `make format-check` only checks

# The three extensions share a version and a library. CREATE EXTENSION needs them in this order.
EXTENSION = randflake randflake_type randflake_coordinator
RANDFLAKE_VERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" randflake.control)

MODULE_big = randflake
OBJS = $(patsubst %.cpp,%.o,$(sort $(wildcard src/*/*/*.cpp)))
DATA = $(wildcard extension/*.sql)

REGRESS = $(notdir $(basename $(wildcard sql/*.sql)))
REGRESS_OPTS = $(addprefix --load-extension=,$(EXTENSION)) --no-locale --encoding=UTF8

PG_CONFIG ?= pg_config

# The lease worker connects to its coordinator with libpq.
SHLIB_LINK = -lpq

WARNINGS = -Wall -Wextra -Wno-register -Wno-unknown-warning-option $(if $(filter 0,$(WERROR)),,-Werror)
RANDFLAKE_CXXFLAGS = -std=c++20 -fno-exceptions -fno-rtti -fvisibility=hidden \
	-isystem $(shell $(PG_CONFIG) --includedir-server) \
	-isystem $(shell $(PG_CONFIG) --includedir) -Isrc -DRANDFLAKE_VERSION='"$(RANDFLAKE_VERSION)"'
# Builders set flags in COPT, which PGXS passes only to the C compiler.
PG_CXXFLAGS = $(RANDFLAKE_CXXFLAGS) $(WARNINGS) -MMD -MP $(COPT)

EXTRA_CLEAN = build $(OBJS:.o=.d) $(OBJS:.o=.gcno)

# Bitcode for the JIT would double the build time. Inlining gains nothing for functions that spend
# their time in a shared atomic operation or a cipher.
override with_llvm = no

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

-include $(OBJS:.o=.d)
src/pg/main/init.o: randflake.control

# A build with another server, compiler or set of flags compiles all files again.
.PHONY: FORCE
build/built_with: export BUILT_WITH = $(shell $(PG_CONFIG) --version) $(CXX) $(CXXFLAGS) $(CPPFLAGS)
build/built_with: FORCE
	@mkdir -p build; printenv BUILT_WITH | cmp -s - $@ || printenv BUILT_WITH >$@
$(OBJS): build/built_with

# PostgreSQL is a C program, so the library must load without symbols of the C++ runtime.
.PHONY: symbols
symbols: $(shlib)
	@if nm -D --undefined-only $(shlib) | grep -E ' U (_Z|__cxa|__gxx)'; then \
		echo "$(shlib) needs the C++ runtime"; exit 1; \
	else echo "$(shlib): no C++ runtime symbols"; fi

all: symbols

.PHONY: unit fuzz coverage tempcheck soak lint format format-check
unit:
	$(MAKE) -C test/unit check

fuzz:
	$(MAKE) -C test/fuzz check

coverage:
	PG_CONFIG=$(PG_CONFIG) scripts/coverage.sh

tempcheck:
	PG_CONFIG=$(PG_CONFIG) scripts/tempcheck.sh

ROUNDS ?= 500
soak:
	RANDFLAKE_ROUNDS=$(ROUNDS) PG_CONFIG=$(PG_CONFIG) scripts/tempcheck.sh tap 100_crash

lint:
	scripts/check_rooms.sh
	! LC_ALL=C.UTF-8 grep -rnE '^.{101}' bench docs/monitoring extension managed migrate scripts sql test/t | \
		grep -E '^[^:]+:[0-9]+: *(--|#) '
	printf '%s\n' $(wildcard src/*/*/*.cpp) | xargs -P $(shell nproc) -I {} \
		clang-tidy --quiet --checks='$(TIDY_CHECKS)' {} -- $(RANDFLAKE_CXXFLAGS) $(WARNINGS) -D_GNU_SOURCE
	cppcheck -q -j $(shell nproc) --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
		--std=c++20 --language=c++ -Isrc src

# META.json names the release. Two archives of the same commit have the same bytes.
RELEASE = randflake-$(shell sed -n 's/^    "version": *"\(.*\)",$$/\1/p' META.json)
.PHONY: dist
dist:
	scripts/check_versions.sh
	@mkdir -p build && rm -f build/randflake-*.tar.gz build/randflake-*.zip
	for format in tar.gz zip; do \
		git archive --prefix=$(RELEASE)/ -o build/$(RELEASE).$$format HEAD || exit; \
	done

SOURCES = $(wildcard src/*/*/*.cpp src/*/*/*.h test/*/*.cpp test/*/*.h)
format:
	clang-format -i $(SOURCES)
format-check:
	clang-format --dry-run -Werror $(SOURCES)

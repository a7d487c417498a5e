# randflake for PostgreSQL: build, install and test with PGXS.
#
#   make                 build against the server of PG_CONFIG
#   make install         install the library and the three extensions
#   make installcheck    regression tests against a running, configured server
#   make tempcheck       regression and TAP tests, each on a server of its own
#   make soak            500 crashes under load, or ROUNDS=n
#   make managed         join SQL from its parts; needs no PostgreSQL
#   make unit            unit tests of src/core (no server)
#   make dist            archives of the last commit in build/
#   make fuzz            fuzz targets of src/core; FUZZ_SECONDS=n for each of them
#   make coverage        lists the lines that tests reach; see scripts/coverage.sh
#   make lint            clang's warnings, clang-tidy and cppcheck over src; TIDY_CHECKS adds checks,
#                        and ROOMS=1 reads the files of a directory together, five times as fast
#   make compile_commands   writes compile_commands.json, which editors and clangd read
#   make format          clang-format every source file; `make format-check` only checks

# The three extensions share a version and a library. CREATE EXTENSION needs them in this order.
EXTENSION = randflake randflake_type randflake_coordinator
RANDFLAKE_VERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" randflake.control)

# These SQL files are joined from parts. To add a file, name it here and in .gitignore, and give it
# a rule without a recipe that names its parts in their order, as below. Set SCHEMA for the file if
# a name must replace @extschema@: `managed/some.sql: SCHEMA = some`. scripts/join_sql.awk says what
# else a part may contain. A checkout has only the parts. `make` and `make managed` make the files,
# and a release's archives contain them.
BUILT_SQL = extension/randflake_coordinator--1.0.sql managed/coordinator.sql managed/randflake.sql \
	migrate/randflake_migrate.sql

MODULE_big = randflake
UNITS = $(sort $(wildcard src/*/*/*.cpp))
# ROOMS=1 compiles and lints the files of a directory together, which takes less time.
ROOM_FILES = $(addsuffix .cpp,$(addprefix build/rooms/,$(subst /,_,$(sort $(patsubst %/,%,$(dir $(UNITS)))))))
OBJS = $(patsubst %.cpp,%.o,$(if $(ROOMS),$(ROOM_FILES),$(UNITS)))
DATA = $(sort $(wildcard extension/*.sql) $(filter extension/%,$(BUILT_SQL)))

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

EXTRA_CLEAN = build $(BUILT_SQL) $(OBJS:.o=.d) $(OBJS:.o=.gcno)

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

managed/randflake.sql: $(sort $(wildcard managed/parts/*.sql))
migrate/randflake_migrate.sql: $(sort $(wildcard migrate/parts/*.sql))

# The two editions of the coordinator share all parts but one.
COORDINATOR = $(sort $(wildcard extension/coordinator/*.sql))
extension/randflake_coordinator--1.0.sql: extension/coordinator/edition/extension.sql $(COORDINATOR)
managed/coordinator.sql: extension/coordinator/edition/managed.sql $(COORDINATOR)
managed/coordinator.sql: SCHEMA = randflake_coordinator

$(BUILT_SQL): scripts/join_sql.awk
	awk -v schema='$(SCHEMA)' -f scripts/join_sql.awk $(filter %.sql,$^) >$@.new
	mv $@.new $@

.PHONY: managed
managed: $(BUILT_SQL)

# PostgreSQL is a C program, so the library must load without symbols of the C++ runtime.
.PHONY: symbols
symbols: $(shlib)
	@if nm -D --undefined-only $(shlib) | grep -E ' U (_Z|__cxa|__gxx)'; then \
		echo "$(shlib) needs the C++ runtime"; exit 1; \
	else echo "$(shlib): no C++ runtime symbols"; fi

all: symbols $(BUILT_SQL)

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

# These SQL files keep the rules of scripts/check_sql.awk.
CHECKED_SQL = $(BUILT_SQL)
UNROLLED = randflake_generate randflake_encrypt randflake_encrypt_many

$(ROOM_FILES): build/rooms/%.cpp: $(UNITS)
	@mkdir -p $(@D)
	@printf '#include "$(CURDIR)/%s"\n' $(filter $(subst _,/,$*)/%,$(UNITS)) >$@

lint: $(CHECKED_SQL) $(if $(ROOMS),$(ROOM_FILES))
	scripts/check_rooms.sh
	LC_ALL=C awk -v exempt='$(UNROLLED)' -f scripts/check_sql.awk $(CHECKED_SQL)
	! LC_ALL=C.UTF-8 grep -rnE '^.{101}' bench docs/monitoring extension managed migrate scripts sql test/t | \
		grep -E '^[^:]+:[0-9]+: *(--|#) '
	printf '%s\n' $(if $(ROOMS),$(ROOM_FILES),$(UNITS)) | xargs -P $(shell nproc) -I {} \
		clang-tidy --quiet --checks='-bugprone-suspicious-include,$(TIDY_CHECKS)' {} -- $(RANDFLAKE_CXXFLAGS) $(WARNINGS) -D_GNU_SOURCE
	cppcheck -q -j $(shell nproc) --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
		--std=c++20 --language=c++ -Isrc src

.PHONY: compile_commands
compile_commands: export COMMAND = $(CXX) $(RANDFLAKE_CXXFLAGS) $(WARNINGS) -c
compile_commands:
	command=$$(printenv COMMAND | sed 's/"/\\"/g'); for file in $(UNITS); do \
		echo "{\"directory\": \"$(CURDIR)\", \"file\": \"$$file\", \"command\": \"$$command $$file\"},"; \
	done | sed '1s/^/[/; $$s/,$$/]/' >compile_commands.json

# META.json names the release. Two archives of the same commit have the same bytes.
RELEASE = randflake-$(shell sed -n 's/^    "version": *"\(.*\)",$$/\1/p' META.json)
.PHONY: dist
dist: $(BUILT_SQL)
	scripts/check_versions.sh
	@mkdir -p build && rm -f build/randflake-*.tar.gz build/randflake-*.zip
	for format in tar.gz zip; do \
		git archive $(foreach file,$(BUILT_SQL),--prefix=$(RELEASE)/$(dir $(file)) --add-file=$(file)) \
			--prefix=$(RELEASE)/ -o build/$(RELEASE).$$format HEAD || exit; \
	done

SOURCES = $(wildcard src/*/*/*.cpp src/*/*/*.h test/*/*.cpp test/*/*.h)
format:
	clang-format -i $(SOURCES)
format-check:
	clang-format --dry-run -Werror $(SOURCES)

# SPDX-License-Identifier: GPL-2.0-only
# kdirect: what a person types. `make help` explains it.

KERNEL	?= stock-6.1
KDIR	?= /lib/modules/$(shell uname -r)/build
PREFIX	?= /usr/local
JOBS	?= $(shell nproc)
KVER	= $(firstword $(shell modinfo -F vermagic build/kmod/host/kdirect.ko))

.DEFAULT_GOAL := help
.PHONY: help demo check check-full lint bench coverage fuzz module module-vm kunit-vm tools tests sim install uninstall clean

## help: this list
help:
	@echo "kdirect: RDMA data through the kernel"; echo
	@sed -n 's/^## \([a-z-]*\): /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22
	@echo; echo "KDIR=DIR   the kernel to build for (default: the running one)"
	@echo "KERNEL=NAME   the kernel of the virtual machines ($(KERNEL); scripts/kernel list)"
	@echo "PREFIX=DIR   where install puts the tool ($(PREFIX))"

## demo: two virtual machines, one channel, messages both ways (sets up what it needs)
demo:
	@scripts/deps build vm
	@$(MAKE) --no-print-directory module-vm tools
	@scripts/vm run --kernel $(KERNEL) --machines 2 --timeout 240 tests/vm/demo

## check: all quick tests; ends with `N passed, N failed`
check:
	@scripts/deps build vm test lint kernel
	@KERNEL=$(KERNEL) tests/run quick

## check-full: the long tests
check-full:
	@scripts/deps build vm test lint kernel
	@KERNEL=$(KERNEL) tests/run full

## lint: style and static checks
lint:
	@scripts/deps lint build
	@scripts/lint

## bench: kernel path beside user-space verbs, in instructions and time
bench:
	@scripts/deps build vm bench
	@$(MAKE) --no-print-directory module-vm tools
	@tests/bench/run

# --- building ------------------------------------------------------------------------

# Objects go into a farm of links, one for each kernel, so that builds for several
# kernels stand side by side and the checkout stays clean.
farm = mkdir -p build/kmod/$(1) && cp -rsf $(CURDIR)/Kbuild $(CURDIR)/kmod $(CURDIR)/uapi \
	build/kmod/$(1)/ && find build/kmod/$(1) -xtype l -delete

## module: kdirect.ko for the running kernel, or KDIR=
module:
	@$(call farm,host)
	@$(MAKE) --no-print-directory -j$(JOBS) -C $(KDIR) M=$(CURDIR)/build/kmod/host modules
	@scripts/check-module build/kmod/host/kdirect.ko
	@echo "build/kmod/host/kdirect.ko"

## module-vm: kdirect.ko for the kernel of the virtual machines
module-vm:
	@$(call farm,$(KERNEL))
	@$(MAKE) --no-print-directory -j$(JOBS) -C "$$(scripts/kernel kdir $(KERNEL))" \
		M=$(CURDIR)/build/kmod/$(KERNEL) modules
	@scripts/check-module build/kmod/$(KERNEL)/kdirect.ko

## kunit-vm: kdirect_kunit.ko, the same core and shim with the KUnit suites, for that kernel
kunit-vm:
	@mkdir -p build/kunit/$(KERNEL)/tests && cp -rsf $(CURDIR)/kmod $(CURDIR)/uapi build/kunit/$(KERNEL)/ && \
		cp -rsf $(CURDIR)/tests/kunit build/kunit/$(KERNEL)/tests/ && \
		find build/kunit/$(KERNEL) -xtype l -delete && \
		ln -sf $(CURDIR)/Kbuild build/kunit/$(KERNEL)/product && \
		ln -sf $(CURDIR)/tests/kunit/Kbuild build/kunit/$(KERNEL)/Kbuild
	@$(MAKE) --no-print-directory -j$(JOBS) -C "$$(scripts/kernel kdir $(KERNEL))" \
		M=$(CURDIR)/build/kunit/$(KERNEL) modules

## tools: the command-line tool, and libkdirect
tools:
	@cmake -S tools -B build/tools -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo >/dev/null
	@ninja -C build/tools --quiet
	@mkdir -p build/bin && ln -sf ../tools/kdirect/kdirect build/bin/kdirect

## tests: the host tests' programs
tests:
	@cmake -S tests -B build/host -G Ninja >/dev/null
	@ninja -C build/host --quiet

## sim: simulated schedules with faults: COUNT of them, or SEED=N [STEPS=N] once more with a trace
sim:
	@cmake -S tests -B build/storm -G Ninja -DCMAKE_BUILD_TYPE=Release -DKD_SANITIZE= \
		-DKD_WATCH=ON >/dev/null
	@ninja -C build/storm --quiet storm
	@if [ -n "$(SEED)" ]; then \
		build/storm/storm/storm --seed $(SEED) --trace $(if $(STEPS),--steps $(STEPS)); \
	else \
		build/storm/storm/storm --first $(or $(FIRST),1) --count $(or $(COUNT),100000) \
			--jobs $(JOBS) --require --reach build/storm/reach; \
	fi

## coverage: lines and branches of the core that the host tests reach
coverage:
	@scripts/deps build test
	@tests/coverage

## fuzz: hostile input, SECONDS=60 for each TARGET="wire peer netlink node"
fuzz:
	@scripts/deps build test
	@tests/fuzz/run $(or $(SECONDS),60) $(TARGET)

# --- installing -------------------------------------------------------------------------

## install: module, tool, library, man pages and udev rule on this machine (as root, after module and tools)
install:
	install -D -m 644 build/kmod/host/kdirect.ko $(DESTDIR)/lib/modules/$(KVER)/updates/kdirect.ko
	[ -n "$(DESTDIR)" ] || depmod $(KVER)
	DESTDIR=$(DESTDIR) cmake --install build/tools --prefix $(PREFIX)
	[ -n "$(DESTDIR)" ] || ldconfig
	install -D -m 644 scripts/60-kdirect.rules $(DESTDIR)/etc/udev/rules.d/60-kdirect.rules
	install -D -m 644 scripts/kdirect.sysusers $(DESTDIR)/usr/lib/sysusers.d/kdirect.conf
	[ -n "$(DESTDIR)" ] || systemd-sysusers || groupadd -rf kdirect

## clean: everything that was built here
clean:
	rm -rf build

// SPDX-License-Identifier: GPL-2.0-only
// A plugin for QEMU: instructions that the machine has executed in kernel and in user
// mode, whenever a program in it executes a marker (measured.cc).
//
//   -plugin count.so,out=FILE[,profile=PREFIX]
//
// FILE gets a line "KERNEL USER" for each marker. With a prefix, PREFIX.N gets
// "ADDRESS INSTRUCTIONS" of the kernel's code since the marker before the Nth.
#include "marker.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <unordered_map>

// QEMU's interface, as far as it is used here; Debian has no package of qemu-plugin.h.
// QEMU 9.1 did away with counters that are not one for each CPU.
extern "C" {
struct qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
using trans_cb = void (*)(uint64_t id, qemu_plugin_tb *tb);
using exec_cb = void (*)(unsigned cpu, void *arg);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, trans_cb cb);
void qemu_plugin_register_vcpu_tb_exec_inline(qemu_plugin_tb *tb, qemu_plugin_op op, void *counter,
					      uint64_t add);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn *insn, exec_cb cb,
					    qemu_plugin_cb_flags flags, void *arg);
size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const qemu_plugin_tb *tb);
qemu_plugin_insn *qemu_plugin_tb_get_insn(const qemu_plugin_tb *tb, size_t index);
const void *qemu_plugin_insn_data(const qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const qemu_plugin_insn *insn);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id, const qemu_info_t *info,
							       int argc, char **argv);
}

namespace
{

FILE *out;
std::string profile;
uint64_t kernel, user;
unsigned markers;
std::unordered_map<uint64_t, uint64_t> blocks; // its nodes never move

void marked(unsigned, void *)
{
	fprintf(out, "%" PRIu64 " %" PRIu64 "\n", kernel, user);
	fflush(out);
	markers++;
	if (profile.empty())
		return;
	FILE *file = fopen((profile + "." + std::to_string(markers)).c_str(), "w");
	for (auto &[address, count] : blocks) {
		if (file && count)
			fprintf(file, "%" PRIx64 " %" PRIu64 "\n", address, count);
		count = 0;
	}
	if (file)
		fclose(file);
}

void translated(uint64_t, qemu_plugin_tb *tb)
{
	const uint8_t marker[] = {KD_MARKER};
	size_t count = qemu_plugin_tb_n_insns(tb);
	uint64_t address = qemu_plugin_tb_vaddr(tb);
	bool in_kernel = address >> 63;
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64,
						 in_kernel ? &kernel : &user, count);
	if (in_kernel && !profile.empty())
		qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64,
							 &blocks[address], count);
	for (size_t i = 0; !in_kernel && i < count; i++) {
		qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		if (qemu_plugin_insn_size(insn) == sizeof(marker) &&
		    !memcmp(qemu_plugin_insn_data(insn), marker, sizeof(marker)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, QEMU_PLUGIN_CB_NO_REGS,
							       nullptr);
	}
}

} // namespace

int qemu_plugin_install(uint64_t id, const qemu_info_t *, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
		else if (!strncmp(argv[i], "profile=", 8))
			profile = argv[i] + 8;
	}
	if (!out) {
		fprintf(stderr, "count: out=FILE is missing, or cannot be written\n");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}

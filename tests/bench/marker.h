/* SPDX-License-Identifier: GPL-2.0-only */
/* An instruction without effect that count.cc recognizes: nopl 0x6b64696d(%rax) */
#pragma once

#define KD_MARKER 0x0f, 0x1f, 0x80, 0x6d, 0x69, 0x64, 0x6b

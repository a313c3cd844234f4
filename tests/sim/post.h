/* SPDX-License-Identifier: GPL-2.0-only */
/* What the functions that post work requests share. */
#pragma once
#include "fabric.h"

namespace sim
{

/* The cqe is of this kind, and becomes posted. */
void mark_posted(kd_cqe *cqe, Qp *qp, kd_cqe_kind kind, const char *function);
kd_cqe_kind cqe_kind(const kd_cqe *cqe, const char *function);
Dma &to_dma(const kd_dma *dma, kd_dma_dir dir, const char *function);
/* May the send side take @count more WRs of the kinds that max_send counts? */
void check_send_room(const Qp *qp, std::size_t count, const char *function);
/* 0, or why nothing can be posted. */
int check_state(const Qp *qp, bool send, const char *function);
SendWr send_wr(const kd_dma *dma, uint32_t len, bool signalled, kd_cqe *cqe, const char *function);
/* What registers @frwr again; the MR. */
Mr *post_frwr(World &w, Qp *qp, kd_cqe *cqe, kd_frwr *frwr, bool sink, bool signalled);
/* iWARP: a READ of a byte for nobody, behind WRITEs. */
void post_probe(World &w, Qp *qp, kd_cqe *cqe, uint64_t addr, uint32_t rkey);
/* One more context of max_reads. */
void check_contexts(const Qp *qp, const char *function);

} // namespace sim

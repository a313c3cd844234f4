// SPDX-License-Identifier: GPL-2.0-only
#include "core_api.h"

namespace sim
{

const CoreApi &linked_core()
{
#define SIM_VALUE(name) .name = ::kd_##name,
	static const CoreApi api = {SIM_CORE_CALLS(SIM_VALUE)};
#undef SIM_VALUE
	return api;
}

} // namespace sim

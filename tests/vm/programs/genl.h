// SPDX-License-Identifier: GPL-2.0-only
// Generic netlink as bytes: messages that no library would make, and all of what is
// answered. The tool has a library; this is for who lies.
#pragma once

#include "common.h"

#include <kdirect_netlink.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

using Bytes = std::vector<uint8_t>;

// An attribute; it may say another length than it has.
void put(Bytes &out, uint16_t type, const void *data, size_t len, int said = -1);
void put_string(Bytes &out, uint16_t type, const char *text);
template <class T>
void put_number(Bytes &out, uint16_t type, T value)
{
	put(out, type, &value, sizeof(value));
}

Bytes genl_message(uint16_t family, uint8_t command, uint16_t flags, const Bytes &attributes,
		   uint8_t version = KDIRECT_GENL_VERSION, uint16_t reserved = 0,
		   uint32_t sequence = 1);

struct Answer {
	int err = 0;          // 0, or the errno; -1: none came
	std::string text;     // of the extended acknowledgment
	bool names = false;   // it says which attribute, or which is missing
	unsigned objects = 0; // messages of the family
	Bytes object;         // attributes of the last one
};

class GenlSocket
{
public:
	GenlSocket(); // receive() waits 20 s at most
	~GenlSocket();
	GenlSocket(const GenlSocket &) = delete;
	GenlSocket &operator=(const GenlSocket &) = delete;

	bool send(const Bytes &message) const;
	// Until an acknowledgment or the end of a dump.
	Answer receive() const;
	Answer ask(const Bytes &message) const
	{
		return send(message) ? receive() : Answer{errno, "", true, 0, {}};
	}

	const int fd;
};

// The number of the family; dies where the module is not loaded.
uint16_t kdirect_family(uint32_t *group = nullptr);
// The attribute of that type in a list of attributes, or nothing.
bool find_attribute(const Bytes &attributes, uint16_t type, const uint8_t *&data, size_t &len);

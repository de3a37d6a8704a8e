/* A hash table from names to numbers, with open addressing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

#define FIRST_SIZE 16
#define FULL(used, size) ((used) * 4 >= (size) * 3)

struct slot {
	char *name;
	uint32_t hash;
	long value;
};

struct table {
	struct slot *slots;
	size_t size;
	size_t used;
};

static const unsigned char fold[256] = {
	['A'] = 'a', ['B'] = 'b', ['C'] = 'c', ['D'] = 'd', ['E'] = 'e',
	['F'] = 'f', ['G'] = 'g', ['H'] = 'h', ['I'] = 'i', ['J'] = 'j',
};

/*
 * FNV-1a, letters folded.
 *
 * Short names are the rule here; nothing better was measured for them.
 */
static uint32_t hash_of(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++) {
		unsigned char letter = (unsigned char)*name;

		hash ^= fold[letter] ? fold[letter] : letter;
		hash *= 16777619u;
	}
	return hash;
}

static struct slot *find(struct table *table, const char *name, uint32_t hash)
{
	size_t at = hash & (table->size - 1);

	while (table->slots[at].name) {
		if (table->slots[at].hash == hash && !strcmp(table->slots[at].name, name))
			break;
		at = (at + 1) & (table->size - 1);
	}
	return &table->slots[at];
}

static int grow(struct table *table)
{
	struct table larger = { .size = table->size ? table->size * 2 : FIRST_SIZE };
	size_t at;

	larger.slots = calloc(larger.size, sizeof(*larger.slots));
	if (!larger.slots)
		return -1;
	for (at = 0; at < table->size; at++) {
		struct slot *old = &table->slots[at];

		if (old->name)
			*find(&larger, old->name, old->hash) = *old;
	}
	larger.used = table->used;
	free(table->slots);
	*table = larger;
	return 0;
}

/* Sets a name's number; returns -1 when there is no memory. */
int
table_set(struct table *table, const char *name, long value)
{
	uint32_t hash = hash_of(name);
	struct slot *slot;

	if (FULL(table->used, table->size) && grow(table))
		return -1;
	slot = find(table, name, hash);
	if (!slot->name) {
		slot->name = strdup(name);
		if (!slot->name)
			return -1;
		slot->hash = hash;
		table->used++;
	}
	slot->value = value;
	return 0;
}

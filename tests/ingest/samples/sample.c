#include <stdio.h>
#include "store.h"

#define LIMIT 10
#define SQUARE(x) ((x) * (x))

typedef struct node { int value; struct node *next; } node_t;
typedef int (*handler_fn)(int code, void *data);
typedef unsigned long word;

struct store {
	const char *name;
	int counts[LIMIT], total;
	int (*open)(struct store *s);
	unsigned flag : 1;
};

union bits { int i; float f; };
enum color { RED, GREEN = 2, BLUE };

static int counter = 0, *cursor;
extern int shared;
static const struct store_ops ops = {
	.open = store_open,
};

int store_open(struct store *s);

/* Opens a store. */
static inline struct store *store_find(const char *name, int flags)
{
	int local = SQUARE(flags);
	printf("store %s", name);
	return local ? lookup(name) : NULL;
}

int
store_open(struct store *s)
{
	return s->open(s);
}

EXPORT_SYMBOL(store_open);
int **grid(void) { return 0; }

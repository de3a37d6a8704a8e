# Builds.
include common.mk
-include $(DEPS)
CC := gcc
CFLAGS ?= -O2
export PATH += :bin
NAMES = a b

define compile
$(CC) -c $(1)
endef

.PHONY: all clean
all: shop.o main.o
	$(CC) -o shop $^

%.o: %.c
	$(call compile,$<)

ifeq ($(OS),Linux)
LIBS = -lm
clean::
	rm -f *.o
endif

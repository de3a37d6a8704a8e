# Symbols by patterns: no grammar of Cython is installed.
cimport numpy as np
from libc.math cimport sqrt

cdef extern from "shop.h":
    ctypedef struct item_t:
        int price
    int item_price(const item_t *item, int count) nogil
    double *item_all()

ctypedef fused number:
    int
    double

ctypedef unsigned long hash_t
ctypedef int (*visit_t)(item_t *, void *)
LIMIT = 10
cdef int total = 0

cdef class Shop:
    """A shop: def quoted(self): is no definition."""
    cdef public list prices
    cdef readonly dict names

    def __init__(self, name):
        cdef int local = sqrt(4)
        self.prices = []

    cpdef double price(self, name):
        return helper(name)

    cdef inline np.ndarray[double, ndim=1] _all(self) except *:
        return self.prices

cdef double helper(str name) nogil:
    return 1

async def fetch(url):
    return url

cpdef enum Kind:
    FRUIT
    BREAD

cdef extern from "shop.h":
    ctypedef enum Level:
        LOW = 1   # the first
        HIGH
    int none_of(int a)
    enum:
        MOST = 0x10

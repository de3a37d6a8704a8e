package org.shop

import org.base.Store

/** A shop. */
class Shop extends Store {
    static final String NAME = "shop"
    int open(int hour) {
        log.info("open")
        return start(hour)
    }
}

trait Openable<T extends Store> extends Closeable {
    abstract Store openAt(int hour) throws IOException
}

class CornerShop<T> extends Shop<T> implements Openable<Map<String, T>>, Serializable {
    static private final int SIZE = 3
    private owner
    CornerShop(String owner) { this.owner = owner }
    private CornerShop(int size) throws IOException { this("x" * size) }
    static main(args) { def (first, rest) = split(args); first }
    def <E> E pick(List<E> from) { from[0] }
}

enum Day { SUNDAY, MONDAY }

/** One line. */
class ShopSpec extends Specification {
    @Shared def till = 1
    def "opens at an hour, and closes"() {
        def local = new Shop()
        expect: local.open(9) == 9
    }
    @Unroll
    void 'sells #a'(int a) { assert sold(a) }
}

def helper(text) { text.trim() }

task deploy {
    doLast { println "done" }
}

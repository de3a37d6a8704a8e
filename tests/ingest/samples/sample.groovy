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

def helper(text) { text.trim() }

task deploy {
    doLast { println "done" }
}

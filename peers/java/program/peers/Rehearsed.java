package peers;

/** A scenario whose blocks are too slow to warm up with: it would take minutes or hours. */
interface Rehearsed extends Scenario {
    /** Makes blocks quick, which run the same code, or those that were asked for. */
    void rehearse(boolean quick);

    /** About the time that a block of this length takes at least, if it is as asked for. */
    long leastNs(long lengthNs, long seed);
}

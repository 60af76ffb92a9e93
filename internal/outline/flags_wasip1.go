package outline

// nonBlocking: WASI has no such flag, and no pipes that opening could wait for.
const nonBlocking = 0

// Errors for a strategy to throw. Any other error means that the strategy failed.
export class InvalidRequest extends Error {} // the request is invalid, for any provider
export class Unavailable extends Error {} // cannot work at the moment
export class Unsupported extends Error {} // does not do this kind of work

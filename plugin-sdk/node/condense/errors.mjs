// What a strategy throws to say why there is no answer. Any other error says that it could
// not do its work.
export class InvalidRequest extends Error {} // nobody could answer it
export class Unavailable extends Error {} // not at the moment
export class Unsupported extends Error {} // not this kind of work

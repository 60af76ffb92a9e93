// Errors for a strategy to throw. Any other error is a fault of the strategy, as an exception that nobody catches.
export class InvalidRequest extends Error {} // the request is invalid, for any provider
export class Unavailable extends Error {} // cannot work at the moment
export class Unsupported extends Error {} // does not do this kind of work

// What the host answers to a callback that it refuses, such as a request to a model that failed. A strategy that does not
// catch it has declined.
export class HostError extends Error {
  constructor({ code, message }) {
    super(`host: ${message}`)
    this.code = code // a CallbackError.Code, such as CODE_QUOTA
  }
}

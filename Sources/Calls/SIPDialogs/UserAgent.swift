public import Bytes
import SIP

/// The SIP user agent core of the gateway: transactions, dialogs and INVITE usages of RFC 3261, without sockets, clock or randomness of its own.
///
/// Belongs to one thread. Every input is one call of `handle`; everything it causes is in `output` when the call returns.
public struct UserAgent {
  /// Settings that hold for the process.
  public struct Configuration: Sendable {
    /// Server and User-Agent header.
    public var product: String
    /// Seconds in Retry-After while draining or overloaded.
    public var retryAfterSeconds: Int

    public init(product: String = "Trunkline", retryAfterSeconds: Int = 30) {
      (self.product, self.retryAfterSeconds) = (product, retryAfterSeconds)
    }
  }

  private let configuration: Configuration
  private let random: RandomSource

  public init(configuration: Configuration = Configuration(), random: RandomSource) {
    (self.configuration, self.random) = (configuration, random)
  }

  /// When `handle(.timer)` is due; nil if nothing waits.
  public var nextDeadline: Instant? { nil }

  /// Takes one input and appends what it causes to `output`. Malformed messages are answered or dropped, and counted; nothing traps or throws.
  public mutating func handle(_ input: Input, at now: Instant, into output: inout Output) {}
}

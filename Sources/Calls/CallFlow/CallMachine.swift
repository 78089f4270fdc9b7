public import Bytes

/// The call machine: trunk legs, app legs, media gate, routing, reasons and records, without clock, socket, thread or randomness of its own.
///
/// Belongs to the control thread. Every input is one call of `handle`; everything it causes is in `output` when the call returns.
public struct CallMachine {
  private let configuration: Configuration
  private var routing: Routing
  private let random: RandomSource

  public init(configuration: Configuration = Configuration(), routing: Routing, random: RandomSource) {
    (self.configuration, self.routing, self.random) = (configuration, routing, random)
  }

  /// When `handle(.timer)` is due; nil if nothing waits.
  public var nextDeadline: Instant? { nil }
  /// Live calls, oldest first.
  public var summaries: [CallSummary] { [] }
  public var statistics: CallStatistics { CallStatistics() }

  /// Takes one input and appends what it causes to `output`.
  public mutating func handle(_ input: Input, at now: Instant, into output: inout Output) {}
}

import TrunklineBytes
import TrunklinePlatform

/// Counters of the shared store's thread; readable on any thread.
final class SharedStoreMetrics: Sendable {
  enum Failure: String, CaseIterable, Sendable {
    case timeout, away, refused, full
  }
  let up = Gauge()
  let commands = CounterTable(labelNames: ["command"])
  let failures = LabelledCounters<Failure>()
  let elapsed = Histogram(bounds: [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25])
  let connects = Counter()
  let losses = Counter()
  let flushes = Counter()
  let valuesDropped = Counter()
  let valuesUnsigned = Counter()
  let messages = Counter()
  let messagesDropped = Counter()

  var families: [MetricFamily] {
    [
      .gauge(
        "trunkline_shared_store_up", help: "1 while commands can be sent to the shared store and its messages are received.", up),
      .counters("trunkline_shared_store_commands_total", help: "Commands sent to the shared store, by request.", commands),
      .histogram("trunkline_shared_store_command_seconds", help: "From a command to its answer.", elapsed),
      .counters(
        "trunkline_shared_store_failures_total",
        help: "Requests without a reply: no answer in time, no connection, refused by the store, too many waiting.", label: "why",
        failures),
      .counter("trunkline_shared_store_connects_total", help: "Connections made to the shared store.", connects),
      .counter("trunkline_shared_store_losses_total", help: "Times that it was lost.", losses),
      .counter(
        "trunkline_shared_store_flushes_total", help: "Times that the shared store lost its data, or was replaced.", flushes),
      .counter(
        "trunkline_shared_store_values_dropped_total", help: "Values in the shared store that were unreadable.", valuesDropped),
      .counter(
        "trunkline_shared_store_values_unsigned_total",
        help: "Values and messages in the shared store that were skipped: not signed with this cluster's key, or too old.",
        valuesUnsigned),
      .counter("trunkline_shared_store_messages_total", help: "Messages received from other nodes.", messages),
      .counter(
        "trunkline_shared_store_messages_dropped_total", help: "Messages on our channels that were none.", messagesDropped),
    ]
  }
}

public import Logging
public import PushPolicy
import TrunklineBytes
public import TrunklinePlatform

/// The events thread: sends the events of the event journal to webhooks, at least once and in order for each subject
/// (`EventSink`). No thread waits for it, and a dead webhook delays no other.
///
///     let sender = try EventSender(folder: folder, webhooks: webhooks, random: .system, logger: logger)
///     store.onEvents { sender.wake() }
///     sender.stop()
///
/// The state of each webhook is in a file of the journal's folder, written once a second and at the end. A new webhook gets all
/// events that the journal still has.
public final class EventSender: Sendable {
  private let thread: HTTPThread<EventWorker>
  private let statistics = EventStatistics()

  public init(
    folder: String, webhooks: [EventWebhook], tls: TLSFiles = TLSFiles(), random: RandomSource, logger: Logger
  ) throws(SystemError) {
    let statistics = statistics
    thread = try HTTPThread(name: "events", capacity: Limits.webhookMailbox, tls: tls, logger: logger) { loop, transfers in
      EventWorker(
        loop: loop, transfers: transfers, folder: folder, webhooks: webhooks, random: random, statistics: statistics,
        logger: logger)
    }
  }

  /// Any thread: the journal has grown.
  public func wake() { thread.post(.grown) }
  /// Any thread. Replaces the webhooks; the state of another webhook with the same URL is kept.
  public func replace(_ webhooks: [EventWebhook], tls: TLSFiles) { thread.post(.webhooks(webhooks, tls)) }
  /// Ends the thread; the next process sends the remaining events.
  public func stop() { thread.stop() }

  public var queue: MailboxReading { thread.queue }
  public var metrics: [MetricFamily] { statistics.families }
}

final class EventStatistics: Sendable {
  enum Outcome: String, CaseIterable, Sendable {
    /// Accepted.
    case delivered
    /// A status that is about the event.
    case refused
    /// The server's fault.
    case failed
    case expired
    /// No longer in the journal.
    case lost
  }
  let outcomes = LabelledCounters<Outcome>()
  let time = Histogram(bounds: Histogram.secondsBounds)
  let open = Gauge()
  let failing = Gauge()

  var families: [MetricFamily] {
    [
      .counters(
        "trunkline_event_webhooks_total", help: "Requests with an event by how they ended.", label: "outcome", outcomes),
      .histogram("trunkline_event_webhook_seconds", help: "From a request with an event to its answer.", time),
      .gauge("trunkline_events_open", help: "Events in memory that a webhook has not accepted yet.", open),
      .gauge("trunkline_event_webhooks_failing", help: "Webhooks whose last request failed.", failing),
    ]
  }
}

import CallFlow
import CallModel
import Configuration
import Control
import Devices
import Logging
import OutgoingHTTP
import Store
import TrunklinePlatform
import TrunklineSIPDialogs
import TrunklineSIPTrace

/// What outlives a call: the journal, the records and the devices of the thread `store`, the directories and histories, and the
/// events of the journal that are sent to webhooks.
final class StoreComponent: StoreOutput, Sendable {
  let calls: CallStore
  let directory: DirectoryService
  /// Nil: no events are kept.
  private let events: EventSender?
  private let traces: TraceCollector
  private let recent: RecentCalls

  /// Opens the files.
  /// - Parameters:
  ///   - traces: notified of every journal entry.
  ///   - recent: notified of every record.
  init(
    _ settings: Settings, cluster: ClusterComponent?, traces: TraceCollector, recent: RecentCalls, readiness: Readiness,
    logs: Logs
  ) throws {
    (self.traces, self.recent) = (traces, recent)
    let directory = try Self.directory(settings, cluster, logs)
    self.directory = directory
    calls = try CallStore(
      sqlite: settings.store, records: settings.records,
      events: settings.events.map { _ in EventSettings(folder: settings.eventFolder, source: settings.eventSource) },
      keepsOrphans: cluster != nil, readiness: readiness,
      logger: logs.logger("store"), written: { [directory] in directory.written($0) })
    events = try settings.events.map {
      try EventSender(
        folder: settings.eventFolder, webhooks: $0.webhooks, tls: TLSFiles(authorities: $0.authorities), random: .system,
        logger: logs.logger("events"))
    }
    if settings.streamsRecords { cluster?.stream(settings.records, of: calls) }
  }

  /// Directories and histories, which nodes of a cluster share. Blocks.
  private static func directory(_ settings: Settings, _ cluster: ClusterComponent?, _ logs: Logs) throws -> DirectoryService {
    let sharedStore = cluster.map { cluster in SharedStoreHandle(node: cluster.machine.incarnation) { cluster.ask($0, $1) } }
    return try DirectoryService(
      path: settings.directory, history: settings.historySettings, sharedStore: sharedStore, logger: logs.logger("directory"))
  }

  /// `streams`: called on any thread when the event journal has grown.
  func onEvents(_ streams: @escaping @Sendable () -> Void) {
    calls.onEvents { [events] in
      events?.wake()
      streams()
    }
  }

  func start(_ line: JournalEntry, confirm: @escaping @Sendable (CallID) -> Void) {
    traces.began(line.call, callID: line.sipCallId)
    calls.start(line, gathers: true, confirm: confirm)
  }

  func end(_ record: CallRecord) {
    recent.note(record)
    calls.end(record)
  }

  func disown(_ call: CallID) { calls.disown(call) }
  func change(_ devices: [DeviceChange]) { calls.change(devices) }
  func change(_ grants: [UserGrants.Change]) { calls.change(grants) }
  func append(_ event: GatewayEvent) { calls.append(event) }
  func wake() { calls.wake() }

  func reload(_ new: Settings, inbox: Inbox) {
    directory.reconfigure(new.historySettings)
    guard let events, let next = new.events else { return }
    events.replace(next.webhooks, tls: TLSFiles(authorities: next.authorities))
    inbox.post(.events(new.eventRules))
  }

  var metrics: [MetricFamily] { calls.metrics + directory.metrics + (events?.metrics ?? []) }
  var queues: [MailboxReading] { [calls.queue, directory.queue] + (events.map { [$0.queue] } ?? []) }

  /// After all threads that write records.
  func stop() {
    calls.stop()
    directory.stop()
    events?.stop()
  }
}

extension Settings {
  var historySettings: HistorySettings { .init(keep: history.keep, perUser: history.perUser) }
}

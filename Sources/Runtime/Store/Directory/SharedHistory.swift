import CallModel
import Cluster
import Foundation
import TrunklineAppProtocol
import TrunklineBytes
import TrunklinePlatform

/// Histories of a cluster: in the shared store only, a list of the last calls of each user. One thread.
///
/// | event | does |
/// |---|---|
/// | records written | a row for each user of the call waits; beyond `Limits.waitingHistory` it is lost |
/// | a step | up to `Limits.historyUnanswered` rows are under way |
/// | added | devices here get `hist.changed`, and nodes where the user has other devices pass it on |
/// | it was stored already | nothing: a second record of one call |
/// | no answer, or refused | the row waits again; the next try after 1 to 2 s |
final class SharedHistory {
  private struct Row {
    var user: String
    var call: CallID
    var content: [UInt8]
  }
  private let sharedStore: SharedStoreClient
  private let counters: DirectoryCounters
  private let changed: (_ user: String, _ row: Int64) -> Void
  private var waiting: [Row] = []
  /// By request number.
  private var underWay: [UInt64: Row] = [:]
  private var number: UInt64 = 0
  private var retryAt: Instant?
  var settings: HistorySettings

  /// - Parameter changed: called when a user's history has this new row, for local devices.
  init(
    _ sharedStore: SharedStoreClient, settings: HistorySettings, counters: DirectoryCounters,
    changed: @escaping (_ user: String, _ row: Int64) -> Void
  ) {
    (self.sharedStore, self.settings, self.counters, self.changed) = (sharedStore, settings, counters, changed)
  }

  private var most: Int { min(settings.perUser, Cluster.Limits.historyRows) }

  func add(_ records: [CallRecord]) {
    guard most > 0 else { return }
    for record in records {
      for (user, outcome) in record.outcomes {
        keep(Row(user: user, call: record.call, content: StoredCall(record, of: user, outcome: outcome).row))
      }
    }
  }

  private func keep(_ row: Row) {
    guard waiting.count + underWay.count < Limits.waitingHistory else { return counters.lost.increment() }
    waiting.append(row)
  }

  func step(at now: Instant) {
    if let retryAt, now < retryAt { return }
    retryAt = nil
    let count = min(waiting.count, Limits.historyUnanswered - underWay.count)
    guard count > 0 else { return }
    let rows = waiting.prefix(count)
    waiting.removeFirst(count)
    for row in rows {
      number += 1
      underWay[number] = row
      sharedStore.ask(request(row), at: now) { [unowned self, number] in answered(number, $0) }
    }
  }

  private func request(_ row: Row) -> SharedStoreRequest {
    .addHistory(row.call, user: row.user, row: row.content, most: most, keep: settings.keep)
  }

  private func answered(_ question: UInt64, _ result: SharedStoreHandle.Result) {
    // nil: the user's history was erased meanwhile
    guard let row = underWay.removeValue(forKey: question) else { return }
    guard case .success(.added(let number, let nodes)) = result else {
      keep(row)
      retryAt = retryAt ?? MonotonicClock.now() + Limits.retry + .milliseconds(Int64.random(in: 0...1_000))
      return
    }
    guard let number else { return }
    counters.calls.increment()
    changed(row.user, number)
    for node in nodes where node.node != sharedStore.node.node {
      sharedStore.request(.publish(.history(user: row.user, row: number), to: node.node))
    }
  }

  /// Sends the waiting rows without waiting for answers.
  func stop() {
    for row in waiting { sharedStore.request(request(row)) }
    waiting = []
  }

  func page(_ list: HistoryList, of user: String, at now: Instant, _ answer: @escaping (HistoryPage?) -> Void) {
    let limit = min(list.limit ?? Limits.historyPage, Limits.historyPage)
    sharedStore.ask(.history(of: user, before: list.before.map(Int64.init), most: limit, keep: settings.keep), at: now) {
      [counters] result in
      guard case .success(.values(let rows, let more)) = result else { return answer(nil) }
      let calls = rows.compactMap(StoredCall.entry)
      counters.failures.increment(by: UInt64(rows.count - calls.count))
      answer(HistoryPage(calls: calls, next: more == 1 ? calls.last?.id : nil))
    }
  }

  /// Answers with the number of erased calls; nil: the shared store has not answered.
  func erase(_ user: String, at now: Instant, _ answer: @escaping (Int?) -> Void) {
    waiting.removeAll { $0.user == user }
    underWay = underWay.filter { $0.value.user != user }
    sharedStore.ask(.forgetHistory(of: user), at: now) { [sharedStore, changed] result in
      guard case .success(.count(let count)) = result else { return answer(nil) }
      changed(user, 0)
      sharedStore.request(.broadcast(.history(user: user, row: 0)))
      answer(count)
    }
  }
}

/// A row of a history in the shared store, which inserts the number, `n`, at its start.
private struct StoredCall: Codable {
  var n: Int?
  var v = Cluster.Limits.format
  /// The shared store searches for it, so that a call is added once.
  var c: CallID
  var d: CallSnapshot.Direction
  var p: String
  var s: Int64
  var k: Int64?
  var e: Int64
  var o: HistoryEntry.Outcome
  var r: EndReason
  var x: String?
  var a: String?

  init(_ record: CallRecord, of user: String, outcome: HistoryEntry.Outcome) {
    let isIncoming = record.direction == .incoming
    (c, d, p) = (record.call, isIncoming ? .incoming : .outgoing, isIncoming ? record.from : record.to)
    s = record.times[CallStage.start.rawValue] ?? 0
    (k, e) = (record.times[CallStage.connected.rawValue], record.times[CallStage.ended.rawValue] ?? s)
    (o, r) = (outcome, record.end.reason)
    (x, a) = user == record.user ? (record.device, record.account) : (nil, nil)
  }

  /// The JSON without its first brace.
  var row: [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    return (try? encoder.encode(self)).map { [UInt8]($0.dropFirst()) } ?? []
  }

  /// Nil: no node writes such a row.
  static func entry(_ bytes: [UInt8]) -> HistoryEntry? {
    guard bytes.count <= Limits.historyRowBytes, let row = try? JSONDecoder().decode(StoredCall.self, from: Data(bytes)),
      (Cluster.Limits.oldestFormat...Cluster.Limits.format).contains(row.v), let number = row.n,
      [Int64(number), row.s, row.k ?? 0, row.e].allSatisfy({ (0...1 << 53).contains($0) }),
      row.p.utf8.allSatisfy({ $0 >= 32 && $0 != 127 })
    else { return nil }
    return HistoryEntry(
      id: number, call: row.c, dir: row.d, peer: DirectoryFile.handle(row.p), start: row.s, connect: row.k, end: row.e,
      outcome: row.o, reason: row.r, device: row.x, acct: row.a)
  }
}

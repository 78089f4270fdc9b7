import CallFlow
import CallModel
import Foundation
import Peers

/// A load run in figures, from both sides.
struct LoadReport: Codable {
  var run: LoadResult
  var gateway = Gateway()
  var process: GatewayWatch.Figures?
  /// Packets that did not reach a call or were too late for it, from the trunk and from the app.
  private var lostByCall: [String: (down: UInt64, up: UInt64)] = [:]
  /// Violated limits; empty if the run is good.
  var failures: [String] = []

  private enum CodingKeys: CodingKey { case run, gateway, process, failures }

  struct Gateway: Codable {
    var records = 0
    var packetsFromTrunk: UInt64 = 0, packetsFromApp: UInt64 = 0
    var lostFromTrunk: UInt64 = 0, lostFromApp: UInt64 = 0
    var late: UInt64 = 0, dropped: UInt64 = 0, concealedMilliseconds: UInt64 = 0
    var ticksLeftOut = 0.0
    var sendRefused = 0.0
    /// Upper bound of the bucket, in milliseconds, while all calls were up.
    var tickLatenessP50 = 0.0, tickLatenessP99 = 0.0
    var answeredWithoutMedia = 0.0
    /// Gauges that did not return to their values: name → before and after.
    var gauges: [String: [Double]] = [:]
  }

  /// The limits of a good run; loss is always zero on a good network.
  struct Limits {
    /// Growth over the second half of the held time. A slope alone would measure one page of the allocator in a short run.
    var growthMegabytes = 1.0
    var isGoodNetwork = true
  }

  /// Gauges that need not return at once: the process, the state of its trunks, and entries that are kept for a time after a
  /// call.
  static let changing: Set<String> = [
    "trunkline_call_tombstones", "trunkline_control_delay_seconds", "trunkline_mailbox_high_water",
    "trunkline_media_load", "trunkline_media_complexity_ceiling", "process_resident_memory_bytes",
    "process_open_fds", "process_start_time_seconds", "trunkline_trunk_up", "trunkline_trunk_registered",
    "trunkline_trunk_registration_expires_seconds", "trunkline_trunk_server_up", "trunkline_cluster_lease_age_seconds",
    "trunkline_cluster_nodes", "trunkline_cluster_state", "trunkline_cluster_tasks_led", "trunkline_thread_longest_step_seconds",
  ]

  init(_ run: LoadResult) { self.run = run }

  mutating func record(before: GatewayWatch.Metrics, held: GatewayWatch.Metrics?, after: GatewayWatch.Metrics) {
    func grown(_ name: String) -> Double { after.sum(name) - before.sum(name) }
    gateway.ticksLeftOut = grown("trunkline_media_ticks_left_out_total")
    let refused = "way=\"send_refused\""
    gateway.sendRefused =
      after.value("trunkline_media_packets_total", label: refused) - before.value("trunkline_media_packets_total", label: refused)
    gateway.answeredWithoutMedia = after.sum("trunkline_answered_without_media_total")
    let lateness = "trunkline_media_tick_lateness_seconds"
    gateway.tickLatenessP50 = after.quantile(0.5, of: lateness, since: held ?? before) * 1000
    gateway.tickLatenessP99 = after.quantile(0.99, of: lateness, since: held ?? before) * 1000
    gateway.gauges = Self.unreturned(before: before, after: after)
  }

  static func unreturned(before: GatewayWatch.Metrics, after: GatewayWatch.Metrics) -> [String: [Double]] {
    var out: [String: [Double]] = [:]
    for (name, value) in after.gauges where !changing.contains(after.family(name)) {
      let old = before.values[name] ?? 0
      if value != old { out[name] = [old, value] }
    }
    return out
  }

  mutating func record(_ records: [CallRecord]) {
    gateway.records = records.count
    for record in records {
      func lost(_ stream: CallRecord.Stream?) -> UInt64 { (stream?.lost ?? 0) + (stream?.late ?? 0) }
      lostByCall["\(record.call)"] = (lost(record.fromTrunk), lost(record.fromApp))
      for stream in [record.fromTrunk, record.fromApp].compactMap(\.self) {
        gateway.late += stream.late
        gateway.dropped += stream.dropped
        gateway.concealedMilliseconds += stream.concealedMs
      }
      gateway.packetsFromTrunk += record.fromTrunk?.packets ?? 0
      gateway.packetsFromApp += record.fromApp?.packets ?? 0
      gateway.lostFromTrunk += record.fromTrunk?.lost ?? 0
      gateway.lostFromApp += record.fromApp?.lost ?? 0
      guard let expected = run.expectedEnds["\(record.call)"] else {
        failures.append("the record of call \(record.call) is of no call that was held: \(record.end.reason.rawValue)")
        continue
      }
      let found = "\(record.end.reason.rawValue) \(record.end.by.rawValue)"
      if found != expected { failures.append("call \(record.call) ended with \(found) instead of \(expected)") }
    }
  }

  /// The smallest share of its packets that a call kept, over both directions and all hops.
  var worstKept: Double {
    run.calls.reduce(1) { worst, call in
      let lost = lostByCall[call.id] ?? (0, 0)
      func kept(_ sent: UInt64, missing: UInt64) -> Double { sent == 0 ? 0 : 1 - min(1, Double(missing) / Double(sent)) }
      return min(
        worst, kept(call.sentByTrunk, missing: call.missedByApp + lost.down),
        kept(call.sentByApp, missing: call.missedByTrunk + lost.up))
    }
  }

  mutating func evaluate(_ limits: Limits) {
    func check(_ isGood: Bool, _ text: String) { if !isGood { failures.append(text) } }
    failures += run.problems
    check(run.connected == run.asked, "\(run.connected) of \(run.asked) calls were connected")
    check(run.ended == run.connected, "\(run.ended) of \(run.connected) calls ended on both sides as planned")
    check(gateway.records == run.asked, "\(gateway.records) records for \(run.asked) calls")
    check(gateway.answeredWithoutMedia == 0, "answered without media: \(gateway.answeredWithoutMedia)")
    check(
      gateway.gauges.isEmpty,
      "gauges are not back: \(gateway.gauges.map { "\($0.key) \($0.value)" }.sorted().joined(separator: ", "))")
    check(run.appToTrunk.refused + run.trunkToApp.refused == 0, "SRTP packets did not verify: \(run.trunkToApp.refused)")
    check(run.trunkToApp.unsent + run.appToTrunk.unsent == 0, "this process could not send all: the figures are void")
    if let process {
      check(
        process.residentGrowthMegabytes < limits.growthMegabytes,
        "memory grew by \(process.residentGrowthMegabytes.one) MB in the second half, "
          + "\(Int(process.residentSlopeKilobytesPerMinute)) KB a minute")
    }
    // The network to the apps is good, even if the carrier's is bad.
    check(run.trunkToApp.lost == 0, "\(run.trunkToApp.lost) packets to the apps were lost")
    check(run.appToTrunk.lost == 0, "\(run.appToTrunk.lost) packets to the trunk were lost")
    check(gateway.lostFromApp == 0, "\(gateway.lostFromApp) packets from the apps did not reach a call")
    check(gateway.sendRefused == 0, "the gateway's kernel refused \(Int(gateway.sendRefused)) packets")
    // A bad network's own losses are known: each withheld packet may be lost, and no other.
    check(
      gateway.lostFromTrunk <= run.trunkToApp.withheld,
      "\(gateway.lostFromTrunk) packets from the trunk did not reach a call, \(run.trunkToApp.withheld) were withheld")
    guard limits.isGoodNetwork else { return }
    check(
      run.isVoid || run.scores.allSatisfy(\.isGood),
      "\(run.scores.count { !$0.isGood }) of \(run.scores.count) sampled directions had bad speech")
  }

  var table: String {
    func row(_ name: String, _ d: LoadResult.Direction) -> String {
      "\(name.padded(15))\(d.sent.right(9))\(d.received.right(10))\(d.lost.right(7))"
        + "\(d.withheld.right(10))\(d.reordered.right(11))"
        + "\(d.latenessP50.right(8)) / \(d.latenessP99.right(5)) / \(d.latenessMax.right(5))"
    }
    var lines = [
      "calls          \(run.connected) of \(run.asked) connected, \(run.ended) ended as planned, \(gateway.records) records, "
        + "held \(run.heldSeconds.one) s, set-up p50 \(run.setUpP50.one) ms, p99 \(run.setUpP99.one) ms",
      "direction           sent  received   lost  withheld  reordered   lateness ms p50 / p99 / max",
      row("trunk to app", run.trunkToApp), row("app to trunk", run.appToTrunk),
      "gateway        \(gateway.packetsFromTrunk) packets from trunks, \(gateway.packetsFromApp) from apps, "
        + "lost \(gateway.lostFromTrunk) and \(gateway.lostFromApp), late \(gateway.late), dropped \(gateway.dropped), "
        + "concealed \(gateway.concealedMilliseconds) ms",
      "ticks          late p50 ≤ \(gateway.tickLatenessP50) ms, p99 ≤ \(gateway.tickLatenessP99) ms, "
        + "left out \(Int(gateway.ticksLeftOut))",
      "this process   late p50 \(run.ownLatenessP50.one) ms, p99 \(run.ownLatenessP99.one) ms, max \(run.ownLatenessMax.one) ms"
        + (run.isVoid ? " — VOID: it could not keep time" : ""),
    ]
    for score in run.scores {
      lines.append(
        "speech         \(score.direction): delay \(score.delayMilliseconds.one) ms, level \(score.levelDecibels.one) dB, heard "
          + "\((score.heardShare * 100).one) %, similarity \((score.similarity * 100).one) %, start clipped \(score.clippedStartMilliseconds) ms"
          + (score.isGood ? "" : " — bad speech"))
    }
    if let process {
      lines.append(
        "memory         \(process.residentBeforeMegabytes.one) MB before, \(process.residentFirstMegabytes.one) MB at first, "
          + "\(process.residentLastMegabytes.one) MB at last, slope \(process.residentSlopeKilobytesPerMinute.one) KB/min")
      lines.append("cpu            \((process.cpuCores * 100).one) % of a core, \(process.cpuPercentPerCall.two) % per call")
    }
    return (lines + failures.map { "FAILED         \($0)" }).joined(separator: "\n")
  }
}

extension String {
  fileprivate func padded(_ width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
  fileprivate func right(_ width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }
}

extension UInt64 {
  fileprivate func right(_ width: Int) -> String { String(self).right(width) }
}

extension Double {
  fileprivate var one: String { String(format: "%.1f", self) }
  fileprivate var two: String { String(format: "%.2f", self) }
  fileprivate func right(_ width: Int) -> String { one.right(width) }
}

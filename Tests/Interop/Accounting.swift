import Foundation
import Testing

/// The books of one gateway: every INVITE that a test sent is one call with one record, or one counted refusal.
extension GatewayUnderTest {
  /// Joins the Call-IDs of a test's INVITEs with the records and the counted refusals, then ends the gateway as `finish` does.
  /// `calls` became calls, `refused` were refused before a call existed, `outgoing` is how many `call.start` were accepted.
  func finish(
    calls: [String], refused: [String] = [], outgoing: Int = 0, _ location: SourceLocation = #_sourceLocation
  ) async throws {
    _ = await eventually(within: 6) { try self.sum("trunkline_calls") == 0 }
    try await account(calls: calls, refused: refused, outgoing: outgoing, location)
    invites.withLock { $0 = [] }  // joined by name just now
    try await finish(location)
  }

  /// The join alone. INVITEs received = incoming calls + counted refusals; accepted `call.start` = outgoing calls.
  /// `live` are calls that go on and have no record yet.
  func account(
    calls: [String], refused: [String] = [], live: [String] = [], outgoing: Int = 0, _ location: SourceLocation = #_sourceLocation
  ) async throws {
    _ = await eventually(within: 3) { self.records.count >= calls.count + outgoing }
    let records = records
    for call in calls {
      let own = records.filter { $0["sipCallId"] as? String == call }
      #expect(own.count == 1, "the INVITE \(call) has \(own.count) records", sourceLocation: location)
    }
    for call in refused + live {
      let own = records.filter { $0["sipCallId"] as? String == call }
      #expect(own.isEmpty, "\(call) must not have a record", sourceLocation: location)
    }
    let directions = records.map { $0["direction"] as? String }
    #expect(directions.count { $0 == "in" } == calls.count, "a record without an INVITE", sourceLocation: location)
    #expect(directions.count { $0 == "out" } == outgoing, sourceLocation: location)
    let started = try sum("trunkline_calls_started_total", #"direction="in""#)
    let refusals = try sum("trunkline_calls_refused_total", #"direction="in""#)
    #expect(started == Double(calls.count + live.count), "incoming calls", sourceLocation: location)
    #expect(refusals == Double(refused.count), "counted refusals", sourceLocation: location)
    #expect(try sum("trunkline_calls_started_total", #"direction="out""#) == Double(outgoing), sourceLocation: location)
    #expect(try metric("trunkline_answered_without_media_total") == 0, sourceLocation: location)
  }

  func note(invites calls: [String]) { invites.withLock { $0.formUnion(calls) } }

  /// Joins the INVITEs of all callers of `Peers` with the records and the counted refusals: none is missing, none is double. A test
  /// whose INVITEs come from elsewhere too names them in `finish(calls:)`.
  func joinInvites(_ location: SourceLocation) throws {
    let sent = invites.withLock { $0 }
    guard !sent.isEmpty else { return }
    // no INVITE stands behind a call between users
    let recorded = records.filter { $0["direction"] as? String == "in" && $0["trunk"] as? String != "direct" }.compactMap {
      $0["sipCallId"] as? String
    }
    #expect(Set(recorded).count == recorded.count, "an INVITE with two records", sourceLocation: location)
    #expect(sent.isSuperset(of: recorded), "a record without an INVITE", sourceLocation: location)
    // Strangers get silence: what they send is counted by the transport, and may be sent again.
    guard try sum("trunkline_sip_dropped_total", #"reason="stranger""#) == 0 else { return }
    let refusals = try sum("trunkline_calls_refused_total", #"direction="in""#)
    #expect(Double(sent.subtracting(recorded).count) == refusals, "an INVITE without record or refusal", sourceLocation: location)
  }

  /// How the calls in the records ended, in their order.
  var endReasons: [String] { records.map { ($0["end"] as? [String: Any])?["reason"] as? String ?? "none" } }
}

extension Spawned {
  /// The Call-ID that sipp gives its first call: number, process id, address.
  var callID: String { callIDs(1)[0] }
  func callIDs(_ count: Int) -> [String] { (1...max(1, count)).map { "\($0)-\(pid)@127.0.0.1" } }
}

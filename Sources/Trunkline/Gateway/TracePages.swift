import AppServer
import Bytes
import CallFlow
import Control
import Foundation
import SIPTrace

/// SIP traces through the admin port; `trunkline trace` asks this way.
///
///     POST /v1/traces?trunk=NAME&seconds=600&bytes=67108864      201 with the trace's number
///     POST /v1/traces?call=ID&…                                  one live call, or a Call-ID
///     GET  /v1/traces/NUMBER                                     the next piece of a pcapng file, maybe empty; 404 after the last
///     POST /v1/traces/NUMBER/stop
struct TracePages: Sendable {
  let collector: TraceCollector
  let inbox: Inbox
  let isTrunk: @Sendable (String) -> Bool

  func read(_ request: AdminRequest, _ answer: @escaping RouteTable.Answer) {
    guard let id = UInt64(request.argument("trace")), let piece = collector.read(id) else {
      return answer(APIError(.unknownTrace, "no such trace, or all of it has been read").response)
    }
    answer(AdminResponse(200, contentType: "application/x-pcapng", body: piece))
  }

  func stop(_ request: AdminRequest, _ answer: @escaping RouteTable.Answer) {
    let isStopped = UInt64(request.argument("trace")).map(collector.stop) == true
    answer(isStopped ? .text(202, "ending") : APIError(.unknownTrace, "no such trace").response)
  }

  func start(_ request: AdminRequest, _ answer: @escaping RouteTable.Answer) throws(APIError) {
    let (trunk, call) = (try request.queryValue("trunk"), try request.queryValue("call"))
    let longest = Int(Limits.longest.components.seconds)
    guard let seconds = try request.queryValue("seconds").flatMap({ Int($0) }), (1...longest).contains(seconds) else {
      throw APIError(.badRequest, "seconds: 1...\(longest)")
    }
    guard let bytes = try request.queryValue("bytes").flatMap({ Int($0) }), (1...Limits.largestBytes).contains(bytes) else {
      throw APIError(.badRequest, "bytes: 1...\(Limits.largestBytes)")
    }
    if let trunk, !isTrunk(trunk) { throw APIError(.unknownTrunk, "no such trunk") }
    guard (trunk == nil) != (call == nil) else { throw APIError(.badRequest, "trunk or call") }
    let collector = collector
    let asked = inbox.calls { calls in
      guard let subject = Self.subject(trunk, call, calls) else { return answer(APIError(.unknownCall, "no such call").response) }
      do throws(TraceCollector.Refusal) {
        let id = try collector.start(subject, for: .seconds(seconds), bytes: bytes)
        for call in calls { collector.began(call.call, callID: call.sipCallId) }
        answer(.text(201, String(id)))
      } catch {
        answer(APIError(.tooMany, "\(Limits.traces) traces are running: stop one").response)
      }
    }
    if !asked { answer(APIError.busy.response) }
  }

  /// A call's id names a live call; anything else is taken for a Call-ID, also of a call that is yet to come.
  private static func subject(_ trunk: String?, _ call: String?, _ calls: [CallSummary]) -> TraceSubject? {
    if let trunk { return .trunk(trunk) }
    guard let call else { return nil }
    if let live = calls.first(where: { $0.call.description == call.lowercased() }) {
      return live.sipCallId.map { .call(id: live.call.description, callIDs: [$0]) }
    }
    return Identifier(call) == nil || calls.contains { $0.sipCallId == call } ? .call(id: call, callIDs: [call]) : nil
  }
}

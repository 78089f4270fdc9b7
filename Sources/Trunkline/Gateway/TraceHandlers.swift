import AppServer
import CallFlow
import CallModel
import Control
import Foundation
import TrunklineBytes
import TrunklineSIPTrace

/// SIP traces through the admin port, which `trunkline trace` uses.
///
///     POST /v1/traces?trunk=NAME&seconds=600&bytes=67108864      201 with the trace's number
///     POST /v1/traces?call=ID&…                                  one live call, or a Call-ID
///     GET  /v1/traces/NUMBER                                     the next piece of a pcapng file, or nothing; 404 after the last
///     POST /v1/traces/NUMBER/stop
struct TraceHandlers: Sendable {
  let collector: TraceCollector
  let asker: Asker
  let isTrunk: @Sendable (String) -> Bool

  func read(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) {
    guard let id = UInt64(request.argument("trace")), let piece = collector.read(id) else {
      return answer(APIError(.unknownTrace, "no such trace, or all of it has been read").response)
    }
    answer(AdminResponse(200, contentType: "application/x-pcapng", body: piece))
  }

  func stop(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) {
    let isStopped = UInt64(request.argument("trace")).map(collector.stop) == true
    answer(isStopped ? .text(202, "ending") : APIError(.unknownTrace, "no such trace").response)
  }

  func start(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) throws(APIError) {
    let (trunk, call) = (try request.queryValue("trunk"), try request.queryValue("call"))
    let longest = Int(Limits.longest.components.seconds)
    guard let seconds = try request.queryValue("seconds").flatMap({ Int($0) }), (1...longest).contains(seconds) else {
      throw APIError(.badRequest, "seconds: 1...\(longest)")
    }
    guard let bytes = try request.queryValue("bytes").flatMap({ Int($0) }), (1...Limits.largestBytes).contains(bytes) else {
      throw APIError(.badRequest, "bytes: 1...\(Limits.largestBytes)")
    }
    if let trunk, !isTrunk(trunk) { throw APIError(.unknownTrunk, "no such trunk") }
    guard (trunk == nil) != (call == nil) else { throw APIError(.badRequest, "give either trunk or call") }
    let client = request.client
    if let trunk { return begin(.trunk(trunk), seconds: seconds, bytes: bytes, for: client, answer) }
    guard let call else { return }
    guard let id = Identifier(call) else {
      return begin(.call(id: call, callIDs: [call]), seconds: seconds, bytes: bytes, for: client, answer)
    }
    asker.ask(.call(id), for: client) { [self] found in
      guard case .call(let live)? = found else { return answer(APIError.busy.response) }
      if let live {
        guard let callID = live.sipCallId else { return answer(Self.unknown) }
        return begin(.call(id: live.id.description, callIDs: [callID]), seconds: seconds, bytes: bytes, for: client, answer)
      }
      // a Call-ID that looks like a call's id: valid for a live call only
      eachCall(after: nil, client) { [self] rows, isLast in
        if rows.contains(where: { $0.sipCallId == call }) {
          begin(.call(id: call, callIDs: [call]), seconds: seconds, bytes: bytes, for: client, answer)
          return false
        }
        if isLast { answer(Self.unknown) }
        return true
      } refused: {
        answer(APIError.busy.response)
      }
    }
  }

  private static let unknown = APIError(.unknownCall, "no such call").response

  /// Control reports calls that begin from now on; live calls are searched.
  private func begin(
    _ subject: TraceSubject, seconds: Int, bytes: Int, for client: String, _ answer: @escaping AdminRequest.Answer
  ) {
    let id: UInt64
    do throws(TraceCollector.Refusal) {
      id = try collector.start(subject, for: .seconds(seconds), bytes: bytes)
    } catch {
      return answer(APIError(.tooMany, "\(Limits.traces) traces are running: stop one").response)
    }
    let collector = collector
    eachCall(after: nil, client) { rows, isLast in
      for row in rows { collector.began(row.id, callID: row.sipCallId) }
      if isLast { answer(.text(201, String(id))) }
      return true
    } refused: {
      collector.stop(id)
      answer(APIError.busy.response)
    }
  }

  /// `look` gets one page of live calls after the other, until it returns false.
  private func eachCall(
    after last: CallNumber?, _ client: String, _ look: @escaping @Sendable (_ rows: [CallRow], _ isLast: Bool) -> Bool,
    refused: @escaping @Sendable () -> Void
  ) {
    asker.ask(.calls(after: last), for: client) { [self] found in
      guard case .calls(let page)? = found else { return refused() }
      guard look(page.rows, page.next == nil), let next = page.next else { return }
      eachCall(after: next, client, look, refused: refused)
    }
  }
}

import AppServer
import CallFlow
import CallModel
import Control
import Foundation
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession

/// Live calls on the admin port: lists them, makes them, acts on them. Refusals are `APIError`s.
///
///     GET  /v1/calls                {"calls":[…]}, oldest first
///     GET  /v1/calls/ID             one call
///     POST /v1/calls                {"user":U,"to":NUMBER,"first":F} makes one: the user's devices ring, then the number is called, or the
///                                   other way round
///     POST /v1/calls/ID/hangup      ends it; {"reason":R}, or nothing
///     POST /v1/calls/ID/hold        {"on":B}
///     POST /v1/calls/ID/mute        {"on":B}
///     POST /v1/calls/ID/digits      {"digits":D}
///     POST /v1/calls/ID/play        {"file":NAME} of admin.play_folder; {"on":false} stops it
///     POST /v1/calls/ID/record      {"on":B}
///     POST /v1/calls/ID/stream      {"url":U,"format":F} connects an unanswered incoming call to a program
///     POST /v1/calls/ID/transfer    {"to":NUMBER}, {"user":U} or {"call":ID}
///
/// A call of another node is a 307 to that node, if it states the URL of its admin API (`cluster.admin`).
///
/// Each POST may have an Idempotency-Key; see `IdempotencyTable`.
struct CallHandlers: Sendable {
  typealias Answer = AdminRequest.Answer
  /// The last segment of the path of an action.
  enum Action: String, CaseIterable { case hangup, hold, mute, digits, play, record, stream, transfer }

  let asker: Asker
  let locations: LocationHandlers
  /// Makes the server request more of streamed answers; any thread.
  let wake: @Sendable () -> Void
  /// The recordings that can be played now.
  let recordings: @Sendable () -> [String: Announcement]
  private let repeats = IdempotencyTable()

  init(
    asker: Asker, locations: LocationHandlers, wake: @escaping @Sendable () -> Void,
    recordings: @escaping @Sendable () -> [String: Announcement]
  ) {
    (self.asker, self.locations, self.wake, self.recordings) = (asker, locations, wake, recordings)
  }

  // MARK: rows

  func list(_ request: AdminRequest, _ answer: @escaping Answer) {
    PagedList("calls", asker, client: request.client, wake: wake) { found in
      guard case .calls(let page) = found else { return nil }
      return PagedList.Page(page.rows.map(\.summary), next: page.next.map { .calls(after: $0) })
    }.answer(.calls(after: nil), answer)
  }

  func show(_ request: AdminRequest, _ answer: @escaping Answer) {
    let unknown = APIError(.unknownCall, "no such call")
    guard let id = Identifier(request.argument("call")) else { return answer(unknown.response) }
    asker.ask(.call(id), for: request.client) { [self] found in
      guard case .call(let row)? = found else { return answer(APIError.busy.response) }
      if let row { return answer(.json(200, row.summary)) }
      sendOn(request, id, else: unknown, answer)
    }
  }

  func make(_ request: AdminRequest, _ answer: @escaping Answer) {
    once(request, answer) { [self] answer throws(APIError) in try originate(request, answer) }
  }

  func act(_ action: Action, _ request: AdminRequest, _ answer: @escaping Answer) {
    once(request, answer) { [self] answer throws(APIError) in
      guard let id = Identifier(request.argument("call")) else {
        throw APIError(.badRequest, "\(request.argument("call")) is not the id of a call")
      }
      try send(Self.command(action, request.body, recordings), to: id, request, answer)
    }
  }

  /// A repeat with the same Idempotency-Key gets the first one's answer.
  private func once(
    _ request: AdminRequest, _ answer: @escaping Answer, _ act: (@escaping Answer) throws(APIError) -> Void
  ) {
    func run(_ answer: @escaping Answer) {
      do throws(APIError) { try act(answer) } catch { answer(error.response) }
    }
    guard let key = request.first("idempotency-key") else { return run(answer) }
    switch repeats.begin(key, request) {
    case .answered(let response): answer(response)
    case .new(let ticket):
      run { [repeats] response in
        repeats.finish(ticket, response)
        answer(response)
      }
    }
  }

  // MARK: actions

  private struct Accepted: Encodable { var call: CallID }

  private func send(_ command: CallCommand, to id: CallID, _ request: AdminRequest, _ answer: @escaping Answer) {
    asker.ask(.operation(.command(id, command)), for: request.client) { [self] found in
      guard case .operation(let done)? = found else { return answer(APIError.busy.response) }
      guard case .refused(let failure) = done else { return answer(.json(202, Accepted(call: id))) }
      guard failure.code == .gone else { return answer(APIError(failure).response) }
      sendOn(request, id, else: APIError(failure), answer)
    }
  }

  /// Redirects the request to the node that has the call.
  private func sendOn(_ request: AdminRequest, _ id: CallID, else unknown: APIError, _ answer: @escaping Answer) {
    guard let cluster = locations.cluster else { return answer(unknown.response) }
    locations.find(id, cluster, for: request.client) { found in
      let location = try? JSONDecoder().decode(CallWhere.self, from: Data(found.body))
      guard let live = location?.live, live.node != location?.asked else { return answer(unknown.response) }
      guard let admin = live.admin else {
        return answer(
          APIError(.unknownCall, "the call is at node \(live.node): use its own admin port, or set its cluster.admin").response)
      }
      var response = AdminResponse.text(307, "the call is at node \(live.node)")
      response.headers.append(("Location", admin + request.path))
      answer(response)
    }
  }

  static func command(
    _ action: Action, _ body: [UInt8], _ recordings: () -> [String: Announcement]
  ) throws(APIError) -> CallCommand {
    switch action {
    case .hangup:
      guard let text = try ActionBody(body, mayBeEmpty: true, ["reason"]).text("reason") else { return .hangUp(nil) }
      guard let reason = HangUpReason(rawValue: text) else {
        throw APIError(.badRequest, "reason must be one of \(HangUpReason.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      return .hangUp(reason)
    case .hold: return .hold(try ActionBody(body, ["on"]).flag("on"))
    case .mute: return .mute(try ActionBody(body, ["on"]).flag("on"))
    case .digits:
      guard let digits = try ActionBody(body, ["digits"]).text("digits"),
        TrunklineAppProtocol.Limits.digits.contains(digits.utf8.count),
        digits.utf8.allSatisfy({ "0123456789ABCD*#".utf8.contains($0) })
      else { throw APIError(.badRequest, "digits: 1 to 64 of 0-9, A-D, * and #") }
      return .digits(CallDTMF(digits: digits))
    case .play:
      let body = try ActionBody(body, ["file", "on"])
      let name = try body.text("file")
      if name == nil, body.has("on"), try !body.flag("on") { return .play(nil) }
      guard let name, !body.has("on") else {
        throw APIError(.badRequest, "give file, the name of a file in admin.play_folder, or on: false, which stops the playback")
      }
      guard let audio = recordings()[name] else {
        throw APIError(.unknownFile, "admin.play_folder has no such .wav, or it was added after the last SIGHUP")
      }
      return .play(audio)
    case .record: return .record(try ActionBody(body, ["on"]).flag("on"))
    case .stream: return try stream(ActionBody(body, ["url", "format"]))
    case .transfer: return try transfer(ActionBody(body, ["to", "user", "call"]))
    }
  }

  private static func stream(_ body: ActionBody) throws(APIError) -> CallCommand {
    guard let url = try body.text("url").flatMap({ StreamURL($0) }) else {
      throw APIError(.badRequest, "url must be wss://…, or ws://… of this machine")
    }
    let text = try body.text("format") ?? StreamTarget.Format.mulaw.rawValue
    guard let format = StreamTarget.Format(rawValue: text) else {
      throw APIError(.badRequest, "format must be one of \(StreamTarget.Format.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return .stream(url, format)
  }

  private static func transfer(_ body: ActionBody) throws(APIError) -> CallCommand {
    let (to, user, call) = (try body.text("to"), try body.text("user"), try body.text("call"))
    switch (to, user, call) {
    case (let to?, nil, nil): return .transfer(CallTransfer(target: Handle(k: .phone, h: to)))
    case (nil, let user?, nil): return .transferToUser(user)
    case (nil, nil, let call?):
      guard let id = Identifier(call) else { throw APIError(.badRequest, "call is not the id of a call") }
      return .transfer(CallTransfer(withCall: id, mode: .attended))
    default: throw APIError(.badRequest, "give exactly one of to, user and call")
    }
  }

  private func originate(_ request: AdminRequest, _ answer: @escaping Answer) throws(APIError) {
    let wanted = try Self.wantedCall(request.body)
    asker.ask(.operation(.originate(wanted)), for: request.client) { found in
      switch found {
      case .operation(.originated(let id)): answer(.json(201, Accepted(call: id)))
      case .operation(.refused(let failure)):
        // `notFound` concerns the user or the number
        let isUser = failure.code == .notFound && failure.msg == "no such user"
        answer((isUser ? APIError(.unknownUser, "no such user") : APIError(failure)).response)
      default: answer(APIError.busy.response)
      }
    }
  }

  static func wantedCall(_ bytes: [UInt8]) throws(APIError) -> OriginateRequest {
    let body = try ActionBody(bytes, ["user", "to", "from", "first", "parameters"])
    guard let user = try body.text("user"), let to = try body.text("to") else {
      throw APIError(.badRequest, "user and to are needed")
    }
    guard let first = OriginateRequest.First(rawValue: try body.text("first") ?? "user") else {
      throw APIError(.badRequest, "first must be user (whose devices ring first) or number (which is called first)")
    }
    let given = try body.texts("parameters")
    if let fault = given.flatMap({ CallParameters.fault(of: $0) }) { throw APIError(.badRequest, fault) }
    return OriginateRequest(
      user: user, to: to, from: try body.text("from"), first: first, parameters: given.flatMap { CallParameters($0) })
  }
}

extension APIError {
  /// A refusal of the call machine.
  init(_ failure: Failure) {
    let code: Code =
      switch failure.code {
      case .badRequest: .badRequest
      case .gone: .unknownCall
      case .badState, .busy, .answeredElsewhere, .staleGen: .badState
      case .notFound: .noRoute
      case .forbidden, .callerNumber, .auth, .revoked: .notAllowed
      case .emergency: .emergency
      case .unsupported, .codec: .unsupported
      case .tooMany: .tooMany
      case .overload: .overload
      case .server: .server
      }
    let usual =
      failure.code == .emergency ? "emergency numbers can only be dialled by a device" : "not now: \(failure.code.rawValue)"
    self.init(code, failure.msg ?? usual)
  }
}

import JSONWebToken
import TrunklineAppProtocol
import TrunklineBytes

/// Sessions that a push's wake token began, and the other uses of such a token.
extension SessionMachine {
  /// The call and device of a wake token that may be used now, on this device, and whether its call is here. If not, the node of
  /// the call is dead.
  mutating func verify(wake token: String, device: String?, _ now: Instant) throws(RefusedHello) -> (Wake, isHere: Bool) {
    guard let wake = settings.wakeTokens?.read(token) else { throw RefusedHello(.wakeToken, "wake token") }
    guard device == nil || device == wake.device.device else {
      throw RefusedHello(.deviceMismatch, "the wake token is another device's")
    }
    guard settings.users.contains(wake.device.user) else { throw RefusedHello(.unknownUser, "unknown user") }
    var isHere = true
    if let maker = wake.maker { isHere = try self.isHere(maker, now) }
    let unix = unixMilliseconds(now)
    // Only the node that made the token can judge its time well.
    guard isHere ? wakeUses.redeem(wake, at: now) : unix < wake.expiresAt + Limits.deadWake.milliseconds else {
      throw RefusedHello(.wakeToken, "the wake token has expired")
    }
    return (wake, isHere)
  }

  /// Whether a call of this incarnation would be at this node; false: that node is dead. Throws if the call is at another node.
  func isHere(_ incarnation: String, _ now: Instant) throws(RefusedHello) -> Bool {
    guard let cluster = settings.cluster else { return true }
    switch nodes.liveness(of: incarnation, from: cluster, unixMilliseconds: unixMilliseconds(now)) {
    case .here: return true
    case .dead: return false
    case .living(let url): throw RefusedHello(.otherNode, "the call is at another node", url: url)
    case .unknown: throw RefusedHello(.otherNode, "the call's node is not known yet")
    }
  }

  /// A session that would only be notified that a dead node's call has ended does not replace a connected one: the connected
  /// session is notified, and the new socket is closed as the older of two (4009).
  func checkLocation(_ device: DeviceKey, for call: Identifier, _ output: inout Output) throws(RefusedHello) {
    guard let other = sessionOfDevice[device], let session = sessions[other], session.connection != nil else { return }
    if session.awaitsWelcome == nil { output.events.append(.callLost(device, other, call: call)) }
    throw RefusedHello(.deadNode, "the call is gone with its node", user: device.user)
  }

  /// A login on a session that was for one call: now it is for all.
  mutating func upgrade(_ id: SessionID, isFurther: Bool, _ output: inout Output) {
    guard sessions[id]?.info.onlyCall != nil else { return }
    sessions[id]?.info.onlyCall = nil
    sessions[id]?.info.isFurther = isFurther
    if let session = sessions[id] { output.events.append(.upgraded(session.device, id, session.info)) }
  }

  // MARK: POST /v1/calls/<id>/reject

  mutating func httpReject(
    _ request: HTTPRequestID, call: Identifier, bearer: String?, body: [UInt8], _ now: Instant, _ output: inout Output
  ) {
    guard pendingHTTP.count < Limits.pendingHTTP else { return answer(request, .err(Failure(.overload)), &output) }
    let device: DeviceKey
    do throws(RefusedHello) {
      device = try bearerDevice(bearer ?? "", call: call, now, &output)
    } catch {
      stats.refusals[error.refusal, default: 0] += 1
      if let url = error.url, let location = NodeTable.rejectAddress(of: url, call: call) {
        stats.httpAnswers[307, default: 0] += 1
        return output.actions.append(.httpRedirect(request, location: location))
      }
      return answer(request, .err(Failure(error.code, reason: error.reason, msg: error.message)), &output)
    }
    guard let reject = CallReject(body: body) else {
      return answer(request, .err(Failure(.badRequest, msg: "the body is the d of call.reject")), &output)
    }
    pendingHTTP[request] = .reject(device, call)
    output.events.append(.httpReject(request, device, reject, call: call))
  }

  /// A wake token of this call, or a login of any device.
  private mutating func bearerDevice(
    _ token: String, call: Identifier, _ now: Instant, _ output: inout Output
  ) throws(RefusedHello) -> DeviceKey {
    if let wake = settings.wakeTokens?.read(token) {
      guard wake.call == call else { throw RefusedHello(.wakeToken, "the wake token is another call's") }
      // From a dead node: control knows how the call ended.
      _ = try verify(wake: token, device: nil, now)
      return wake.device
    }
    let claims = try verify(token, device: nil, now, &output)
    return DeviceKey(user: claims.sub, device: claims.dev)
  }

  /// Handles control's answer.
  mutating func httpAnswered(_ request: HTTPRequestID, _ answer: RequestAnswer, _ output: inout Output) {
    let device: DeviceKey
    let call: Identifier
    switch pendingHTTP.removeValue(forKey: request) {
    case nil: return stats.strayCommands += 1
    case .login(let device, let accounts):
      if case .err(let failure) = answer { return output.actions.append(.httpRefused(request, failure)) }
      return output.actions.append(.httpLogin(request, device, accounts: accounts))
    case .reject(let whose, let which): (device, call) = (whose, which)
    }
    // A session that is resumed later does not make the declined call ring again.
    if answer == .ok, let id = sessionOfDevice[device] { sessions[id]?.outbox.withdrawOffer(of: call) }
    self.answer(request, answer, &output)
  }

  private mutating func answer(_ request: HTTPRequestID, _ answer: RequestAnswer, _ output: inout Output) {
    var status = 200
    var body: [UInt8] = Array("{}".utf8)
    if case .err(let failure) = answer {
      status = failure.code.httpStatus
      body = failure.json
    }
    stats.httpAnswers[status, default: 0] += 1
    output.actions.append(.httpAnswer(request, status: status, body: body))
  }
}

/// An HTTP request that waits for control's answer.
enum PendingHTTP {
  case reject(DeviceKey, Identifier)
  case login(DeviceKey, accounts: [String])
}

extension ErrorCode {
  /// RFC 9110 §15.5.
  var httpStatus: Int {
    switch self {
    case .auth: 401
    case .revoked, .forbidden, .callerNumber, .emergency: 403
    case .notFound: 404
    case .badState, .answeredElsewhere, .staleGen, .busy: 409
    case .gone: 410
    case .tooMany: 429
    case .overload: 503
    case .server: 500
    case .badRequest, .unsupported, .codec: 400
    }
  }
}

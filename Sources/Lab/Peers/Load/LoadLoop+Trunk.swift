import TrunklineBytes
import TrunklinePlatform
import TrunklineRTP
import TrunklineSDP
import TrunklineSIPDialogs

extension LoadLoop {
  /// Dials the client's number as the carrier.
  func invite(_ call: LoadCall) {
    let leg = LegID.outbound(UInt64(call.number + 1))
    call.trunk.leg = leg
    byLeg[leg] = call
    let offer = call.trunk.negotiation.makeOffer()
    guard userAgent.invite(leg, to: options.clients[call.number].number, from: call.dialled, sdp: offer) else {
      return fail(call, "no route to \(options.gateway)")
    }
  }

  func handle(_ event: UserAgent.Event) {
    switch event {
    case .inviteReceived(let leg, let invite): incoming(leg, invite)
    case .progress(let leg, _, let sdp?): if let call = byLeg[leg], !call.trunk.isAnswered { applyAnswer(call, sdp) }
    case .answered(let leg, let sdp):
      guard let call = byLeg[leg] else { return }
      call.trunk.isAnswered = true
      if let sdp { applyAnswer(call, sdp) }
      checkUp(call)
    case .acknowledged(let leg, _): if let call = byLeg[leg] { checkUp(call) }
    case .failed(let leg, let code, _, _):
      guard let call = byLeg[leg] else { return }
      if code == 503, options.mayBeRefused { refuse(call) } else { fail(call, "the gateway answered \(code)") }
    case .byeReceived(let leg, _): if let call = byLeg[leg], call.phase != .ending { fail(call, "ended by the gateway") }
    case .reinviteReceived(let leg, _): userAgent.run(.refuseReinvite(leg, code: 488))
    case .legClosed(let leg): closed(leg)
    case .ackTimedOut(let leg): if let call = byLeg[leg] { fail(call, "no ACK") }
    default: break
    }
  }

  private func applyAnswer(_ call: LoadCall, _ sdp: String) {
    do { call.trunk.media = try call.trunk.negotiation.apply(answer: sdp) } catch { fail(call, "SDP: \(error)") }
  }

  /// A call that an app dialled arrives at the carrier: ring and answer.
  private func incoming(_ leg: LegID, _ invite: InboundInvite) {
    guard let number = LoadCall.number(dialled: invite.to.number), calls.indices.contains(number), let offer = invite.sdp,
      let (answer, media) = try? calls[number].trunk.negotiation.answer(to: offer)
    else { return userAgent.run(.refuse(leg, code: 404, reason: nil, cause: nil, retryAfter: nil)) }
    let call = calls[number]
    call.trunk.leg = leg
    byLeg[leg] = call
    call.trunk.media = media
    call.trunk.isAnswered = true
    userAgent.run(.respondProvisional(leg, code: 180, reason: nil, sdp: nil))
    userAgent.run(.answer(leg, sdp: answer))
  }

  private func closed(_ leg: LegID) {
    guard let call = byLeg.removeValue(forKey: leg) else { return }
    call.trunk.isOver = true
    checkOver(call)
  }

  // MARK: RTP

  func receiveTrunk(_ call: LoadCall) {
    call.trunk.socket.receiveAll { bytes, _ in
      let now = MonotonicClock.now()
      let packet = Span<UInt8>(_unsafeBytes: bytes)
      guard let header = try? RTPHeader(parsing: packet) else { return }
      call.trunk.received.receive(
        sequence: header.sequence.raw, timestamp: header.timestamp.raw, at: now, counted: stage == .held)
      if call.isSampled, !call.heardByTrunk.isFull {
        call.heardByTrunk.received(header.timestamp, header.payload(of: packet).withUnsafeBufferPointer { Array($0) }, at: now)
      }
    }
  }
}

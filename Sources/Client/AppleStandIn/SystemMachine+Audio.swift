import TrunklineBytes

/// The audio session, its route and the microphone.
extension SystemMachine {
  private var hasAudioCall: Bool {
    calls.values.contains { ($0.phase == .active || $0.phase == .connecting) && !$0.isHeld }
  }

  mutating func activateSoon(_ now: Instant, _ out: inout [Action]) {
    guard !isAudioActive, activatesAt == nil, hasAudioCall else { return }
    // R8: an app that activates the session itself gets no `didActivate`
    guard !hasAppActivated else { return out.append(.violation(.r8, "setActive was called: didActivate does not come")) }
    activatesAt = rules.activationTime.map { now + $0 }
  }

  mutating func activate(_ out: inout [Action]) {
    guard hasAudioCall, !isAudioActive, !isCellularCall else { return }
    isAudioActive = true
    out.append(.didActivate)
    guard microphone != .granted else { return }
    if microphone == .undetermined, !isLocked { out.append(.microphonePrompt) }
    out.append(.capture(isSilent: true))  // R23
  }

  mutating func settleAudio(_ out: inout [Action]) {
    guard !hasAudioCall else { return }
    activatesAt = nil
    hasAppActivated = false
    guard isAudioActive else { return }
    isAudioActive = false
    out.append(.didDeactivate)
  }

  // MARK: microphone

  mutating func said(_ permission: Permission, _ out: inout [Action]) {
    microphone = permission
    if isAudioActive { out.append(.capture(isSilent: permission != .granted)) }
  }

  // MARK: route

  /// R20: removes the override, and switches the system's speaker button off.
  mutating func categorySet(_ now: Instant, _ out: inout [Action]) {
    guard rules.categoryClearsSpeaker, isAudioActive, route == .speaker else { return }
    out.append(.violation(.r20, "setCategory while the session is active switches the speaker off"))
    change(route: .receiver, now, &out)
  }

  mutating func change(route: Route, _ now: Instant, _ out: inout [Action]) {
    guard route != self.route else { return }
    self.route = route
    guard let time = rules.zeroRateTime else { return out.append(.route(route, sampleRate: route.sampleRate)) }
    out.append(.route(route, sampleRate: 0))
    routeSettles = now + time
  }

  mutating func routeSettled(_ out: inout [Action]) {
    routeSettles = nil
    out.append(.route(route, sampleRate: route.sampleRate))
  }
}

extension SystemMachine.Route {
  /// Hz: 8 kHz for a headset without wideband speech (R28).
  public var sampleRate: Int {
    switch self {
    case .receiver, .speaker, .headphones: 48_000
    case .bluetoothWideband: 16_000
    case .bluetooth: 8_000
    }
  }
}

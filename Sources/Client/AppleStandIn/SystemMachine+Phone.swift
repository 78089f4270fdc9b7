import TrunklineBytes

/// The phone around its calls: the lock, foreground and background, sockets, Recents.
extension SystemMachine {
  mutating func locked(_ isOn: Bool, _ out: inout [Action]) {
    isLocked = isOn
    guard !isOn, !isUnlockedOnce else { return }
    isUnlockedOnce = true
    if isRunning { out.append(.unlockedOnce) }
  }

  mutating func restarted() {
    exited()
    isLocked = true
    isUnlockedOnce = false
    isCellularCall = false
    route = .receiver
    routeSettles = nil
    waitingPushes = []
    waitingStart = nil
  }

  mutating func foreground(_ isOn: Bool, _ now: Instant, _ out: inout [Action]) {
    isForeground = isOn && isRunning
    guard isForeground else { return }
    areSocketsDead = false
    wakes = 0
    for id in ordered(where: { $0.phase == .active && !$0.isHeld }) { burst(id, now, &out) }
  }

  /// R17: an entry whose handle is of a kind that the provider does not support opens nothing.
  mutating func tappedRecent(_ caller: Caller, _ out: inout [Action]) {
    guard handleKinds.map({ $0.contains(caller.kind) }) ?? true else {
      return out.append(.violation(.r17, "the provider does not support handles of kind \(caller.kind): Recents does nothing"))
    }
    if isRunning {
      isForeground = true
      out.append(.startCall(caller))
    } else {
      waitingStart = caller
      out.append(.launch)
    }
  }

  // MARK: sockets (R27)

  /// The time runs in the background without a call.
  mutating func watchSockets(_ now: Instant) {
    let isAtRisk = isRunning && !isForeground && !areSocketsDead && !calls.values.contains { $0.phase != .ended }
    guard isAtRisk, let life = rules.socketLife else { return socketsDieAt = nil }
    if socketsDieAt == nil { socketsDieAt = now + life }
  }

  mutating func socketsDied(_ out: inout [Action]) {
    socketsDieAt = nil
    areSocketsDead = true
    out.append(.socketsDie(failFor: .zero))
  }

  mutating func woken(_ out: inout [Action]) {
    areSocketsDead = false
    wakes = wakes + 1
    guard let limit = rules.wakesUntilSocketsFail, wakes >= limit else { return }
    wakes = 0
    out.append(.socketsDie(failFor: rules.socketsFailTime))
  }
}

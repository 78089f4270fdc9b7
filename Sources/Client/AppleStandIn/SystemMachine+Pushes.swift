import TrunklineBytes

/// Pushes, and the process that they start and kill.
extension SystemMachine {
  mutating func pushed(_ push: PushID, _ now: Instant, _ out: inout [Action]) {
    guard kills < rules.killsBeforeSilence else { return out.append(.violation(.r2, "pushes are no longer delivered")) }
    if isRunning { return deliver(push, now, &out) }
    if waitingPushes.isEmpty { out.append(.launch) }
    waitingPushes.append(push)
  }

  /// R15: only an extension with the entitlement may do this; then it is a push like any other.
  mutating func extensionPushed(_ push: PushID, _ isExtension: Bool, _ now: Instant, _ out: inout [Action]) {
    let error: ExtensionError? =
      !isExtension ? .invalidClientProcess : rules.hasFilteringEntitlement ? nil : .missingEntitlement
    out.append(.extensionPushed(push, error))
    if error == nil { pushed(push, now, &out) }
  }

  mutating func launched(_ now: Instant, _ out: inout [Action]) {
    isRunning = true
    isForeground = false
    areSocketsDead = false
    let waiting = waitingPushes
    waitingPushes = []
    for push in waiting { deliver(push, now, &out) }
    guard let caller = waitingStart else { return }
    waitingStart = nil
    isForeground = true
    out.append(.startCall(caller))
  }

  private mutating func deliver(_ push: PushID, _ now: Instant, _ out: inout [Action]) {
    let isActive = isForeground || calls.values.contains { $0.phase != .ended }
    let mustReport =
      switch rules.mustReport {
      case _ where !rules.hasPushMetadata: true
      case .always: true
      case .unlessActive: !isActive
      case .atRandom: random.next() % 2 == 0
      }
    deliveries[push] = Delivery(mustReport: mustReport, lookAt: now + rules.reportTime)
    out.append(.deliver(push, mustReport: mustReport))
    if !isForeground { woken(&out) }
  }

  mutating func handled(_ push: PushID, _ now: Instant, _ out: inout [Action]) { look(at: push, now, &out) }

  /// R1: checked when the delegate returns, and again after `reportTime`.
  mutating func look(at push: PushID, _ now: Instant, _ out: inout [Action]) {
    guard let delivery = deliveries.removeValue(forKey: push) else { return }
    guard delivery.mustReport, !delivery.isReported else { return }
    guard rules.killsUnreported else { return out.append(.violation(.r1, "a push was not reported")) }
    kills += 1
    out.append(.kill(.r1))
    exited()
  }

  /// The system keeps nothing of a process: its calls end on the screen, its actions are dropped.
  mutating func exited() {
    isRunning = false
    isForeground = false
    hasBegun = false
    beginsAt = nil
    for id in calls.keys where calls[id]?.phase != .ended {
      calls[id]?.phase = .ended
      calls[id]?.ringsUntil = nil
    }
    queue = []
    pending = nil
    deliveries = [:]
    isAudioActive = false
    activatesAt = nil
    hasAppActivated = false
    configuredGroups = nil
    socketsDieAt = nil
    areSocketsDead = false
  }
}

import Foundation
import TrunklineBytes

/// Turns the phone's messages to the process into callbacks.
extension AppProcess {
  /// Only posts: never calls the app or the phone synchronously.
  func receive(_ message: PhoneMessage) {
    guard !lock.withLock({ state.isDead }) else { return }
    switch message {
    case .token(let bytes):
      let registry = lock.withLock {
        state.token = bytes
        return state.registry
      }
      registry?.updated(Data(bytes))
    case .tokenInvalidated:
      let registry = lock.withLock {
        state.token = nil
        return state.registry
      }
      registry?.invalidated()
    case .push(let id, let payload, let mustReport):
      lock.withLock { state.pushes.append((id, payload, mustReport)) }
      registryChanged()
    case .reported(let call, let error): reported(call, error)
    case .requested(let id, let error): requested(id, error: error)
    case .extensionPushed(let id, let error): extensionPushed(id, error: error)
    case .began: provider?.notify { provider, delegate in delegate.providerDidBegin(provider) }
    case .reset:
      lock.withLock { (state.pending, state.accepted) = ([:], []) }
      provider?.notify { provider, delegate in delegate.providerDidReset(provider) }
    case .perform(let id, let request, let until): perform(id, request, until: until)
    case .timedOut(let id): timedOut(id)
    case .call(let facts): changed(facts)
    case .activated, .deactivated, .interrupted, .route, .mediaReset, .capture: audio(message)
    case .startCall, .foreground, .unlockedOnce, .socketsDie: application(message)
    }
  }

  private var provider: CXProvider? { lock.withLock { state.provider } }

  private func changed(_ facts: CallFacts) {
    let observers = lock.withLock {
      state.calls.removeAll { $0.call == facts.call }
      if !facts.hasEnded { state.calls.append(facts) }
      return state.observers.compactMap(\.observer)
    }
    for observer in observers { observer.changed(facts) }
  }

  // MARK: pushes

  func made(_ registry: PKPushRegistry) {
    let token = lock.withLock {
      state.registry = registry
      return state.token
    }
    if let token { registry.updated(Data(token)) }
  }

  /// Delivers pushes that waited for a registry once it accepts them.
  func registryChanged() {
    guard let registry = lock.withLock({ state.registry }), registry.acceptsPushes else { return }
    let waiting = lock.withLock {
      defer { state.pushes = [] }
      return state.pushes
    }
    for push in waiting { registry.received(push.id, payload: push.payload, mustReport: push.mustReport) }
  }

  /// R22 covers reports until the delegate's method returned and a report was made.
  func handles(_ push: Int) { lock.withLock { state.handled = push } }

  // MARK: audio

  private func audio(_ message: PhoneMessage) {
    let session = audioSession
    switch message {
    case .activated:
      session.activated(true)
      provider?.notify { provider, delegate in delegate.provider(provider, didActivate: session) }
    case .deactivated:
      session.activated(false)
      provider?.notify { provider, delegate in delegate.provider(provider, didDeactivate: session) }
    case .interrupted(let isOn): post(on: .main) { session.interrupted(isOn) }
    case .route(let route, let rate): post(on: .main) { session.routed(route, sampleRate: rate) }
    case .mediaReset: post(on: .main) { session.mediaWasReset() }
    case .capture(let isSilent): lock.withLock { state.application.captureIsSilent = isSilent }
    default: break
    }
  }

  // MARK: the application

  private func application(_ message: PhoneMessage) {
    let application = lock.withLock { state.application }
    switch message {
    case .startCall(let caller):
      let type: INPersonHandleType =
        switch caller.kind {
        case .emailAddress: .emailAddress
        case .phoneNumber: .phoneNumber
        case .generic: .unknown
        }
      let person = INPerson(personHandle: INPersonHandle(value: caller.handle, type: type), displayName: caller.name ?? "")
      let intent = INStartCallIntent(contacts: [person], callCapability: .audioCall)
      post(on: .main) { application.continued?(intent) }
    case .foreground(let isOn): post(on: .main) { application.foreground?(isOn) }
    case .unlockedOnce(let isOpen): lock.withLock { state.isUnlockedOnce = isOpen }
    case .socketsDie(let seconds): post(on: .main) { application.socketsDied?(seconds) }
    default: break
    }
  }
}

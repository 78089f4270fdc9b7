import AppleStandIn
import Foundation
import Synchronization
import Testing

/// What the source documents' own samples do wrong, each caught by the stand-in by name.
@Suite(.serialized) struct WrongSnippetsTests {
  /// A sample's delegate; what it does with a push and an answer is the sample's.
  final class Sample: NSObject, CXProviderDelegate, PKPushRegistryDelegate, @unchecked Sendable {
    // Unchecked: one queue.
    let queue = DispatchQueue(label: "sample")
    let registry: PKPushRegistry
    var provider: CXProvider?
    let onPush: @Sendable (Sample, UUID) -> Void
    let onAnswer: @Sendable (Sample, CXAnswerCallAction) -> Void

    init(
      push: @escaping @Sendable (Sample, UUID) -> Void = { $0.report($1) },
      answer: @escaping @Sendable (Sample, CXAnswerCallAction) -> Void = { _, action in action.fulfill() }
    ) {
      (registry, onPush, onAnswer) = (PKPushRegistry(queue: queue), push, answer)
      super.init()
      provider = makeProvider()
      registry.delegate = self
      registry.desiredPushTypes = [.voIP]
    }

    func makeProvider() -> CXProvider {
      let made = CXProvider(configuration: CXProviderConfiguration())
      made.setDelegate(self, queue: queue)
      return made
    }
    func report(_ id: UUID) {
      let update = CXCallUpdate()
      update.remoteHandle = CXHandle(type: .phoneNumber, value: "+15550001")
      provider?.reportNewIncomingCall(with: id, update: update) { _ in }
    }

    func pushRegistry(_ registry: PKPushRegistry, didUpdate pushCredentials: PKPushCredentials, for type: PKPushType) {}
    func pushRegistry(
      _ registry: PKPushRegistry, didReceiveIncomingPushWith payload: PKPushPayload, for type: PKPushType,
      completion: @escaping @Sendable () -> Void
    ) {
      onPush(self, UUID())
      completion()
    }
    func providerDidReset(_ provider: CXProvider) {}
    func provider(_ provider: CXProvider, perform action: CXStartCallAction) { action.fulfill() }
    func provider(_ provider: CXProvider, perform action: CXAnswerCallAction) { onAnswer(self, action) }
    func provider(_ provider: CXProvider, perform action: CXEndCallAction) { action.fulfill() }
    func provider(_ provider: CXProvider, perform action: CXSetHeldCallAction) { action.fulfill() }
    func provider(_ provider: CXProvider, perform action: CXSetMutedCallAction) { action.fulfill() }
    func provider(_ provider: CXProvider, perform action: CXSetGroupCallAction) { action.fail() }
    func provider(_ provider: CXProvider, perform action: CXPlayDTMFCallAction) { action.fulfill() }
    func provider(_ provider: CXProvider, timedOutPerforming action: CXAction) {}
    func provider(_ provider: CXProvider, didActivate audioSession: AVAudioSession) {}
    func provider(_ provider: CXProvider, didDeactivate audioSession: AVAudioSession) {}
  }

  private func run(_ make: @escaping @Sendable () -> Sample) -> StandInPhone {
    let phone = StandInPhone(.strict, clock: .virtual)
    phone.install { make() }
    phone.push("{}")
    phone.tap(.answer)
    phone.advance(.seconds(70))
    return phone
  }

  @Test func `the right sample breaks no rule`() { #expect(run { Sample() }.violations == []) }

  @Test func `a report in a task comes after the delegate's turn: R1`() {
    let phone = run { Sample(push: { sample, id in sample.queue.async { sample.report(id) } }) }
    #expect(phone.violations.contains { $0.hasPrefix("R1:") }, "\(phone.violations)")
  }

  @Test func `setActive by the app: R8, and didActivate does not come`() {
    let phone = run {
      Sample(answer: { _, action in
        try? AVAudioSession.sharedInstance().setActive(true)
        action.fulfill()
      })
    }
    #expect(phone.violations.contains { $0.hasPrefix("R8:") } && !phone.isAudioActive, "\(phone.violations)")
  }

  @Test func `a provider for each call: a second one that lives is seen`() {
    let phone = run {
      Sample(push: { sample, id in
        let second = sample.makeProvider()
        sample.report(id)
        sample.provider = second
      })
    }
    #expect(phone.violations.contains { $0.hasPrefix("R30:") }, "\(phone.violations)")
  }

  @Test func `an answer that is never completed: R6, the call ends`() {
    let phone = run { Sample(answer: { _, _ in }) }
    #expect(phone.screen.calls.isEmpty && !phone.isAudioActive)
  }

  @Test func `an action completed twice: R6`() {
    let phone = run {
      Sample(answer: { _, action in
        action.fulfill()
        action.fulfill()
      })
    }
    #expect(phone.violations.contains { $0.hasPrefix("R6:") }, "\(phone.violations)")
  }
}

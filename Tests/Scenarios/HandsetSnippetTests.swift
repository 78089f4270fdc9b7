import AppleStandIn
import CallFlow
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineSIPDialogs

/// Negative controls: the source documents' own wrong snippets instead of what the SDK does, each caught by the name of the rule
/// that it breaks. A provider per call is in `WrongSnippetsTests`, because only an app's process shows it.
@Suite struct HandsetSnippetTests {
  /// A call that is answered, and hung up by the caller.
  private func faults(_ snippet: Handset.Snippet?) -> (faults: [String], handset: Handset) {
    let world = World()
    world.killed("cell")
    let handset = Handset(world, device: "cell")
    handset.snippet = snippet
    // the media needs one second: an action fulfilled before is fulfilled into silence
    handset.media = MediaPlan(ice: .milliseconds(900), dtls: .seconds(1))
    let leg = world.carrier.call()
    world.run(.seconds(1))
    for call in handset.shown { handset.tap(.answer(call)) }
    world.run(.seconds(3))
    world.carrier.final(leg) == 200 ? world.carrier.hangUp(leg) : world.carrier.cancel(leg)
    world.run(.seconds(70))
    return (handset.leftovers(), handset)
  }

  @Test func `what the SDK does breaks no rule`() { #expect(faults(nil).faults == []) }

  @Test func `report in a Task: R1, the process is killed`() {
    let (faults, handset) = faults(.reportInTask)
    #expect(faults.contains { $0.hasPrefix("killed by R1") } && handset.system.kills == 1, "\(faults)")
  }

  @Test func `fulfil at once: the answer is done before the caller can be heard`() {
    let (faults, _) = faults(.fulfilAtOnce)
    #expect(faults.contains { $0.hasPrefix("INV: the answer") && $0.hasSuffix("before call.connected") }, "\(faults)")
  }

  @Test func `setActive by the app: R8, and didActivate does not come`() {
    let (faults, handset) = faults(.setActive)
    #expect(faults.contains { $0.hasPrefix("R8:") } && !handset.system.isAudioActive, "\(faults)")
  }
}

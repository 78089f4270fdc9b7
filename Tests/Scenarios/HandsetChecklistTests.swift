import Testing

/// The checklists of two of the source documents, point by point: S0, a guide to CallKit and PushKit with 13 points, and S1, its newer edition
/// with 21. What a point asks is in `Checklist`.
///
/// Not here, and why:
///
/// | point | why |
/// |---|---|
/// | 1 of both: background modes, push capability, Call Directory target, VoIP key | settings of the app's Xcode project: `ProjectTests` (AppleSurface) reads the sample's. What iOS does without `voip` is R21 |
/// | 21 of S1: the report of a notification service extension | `SealedCallTests` (TrunklineCallKit), `SampleAppTests` (AppleSurface): an extension is a process of its own. What iOS answers is R15 |
@Suite struct ChecklistTests {
  // MARK: S0, 13 points

  @Test func `S0 2, CFG-1: exactly one CXProvider, made at launch, kept for the life of the app`() throws {
    try Checklist.oneProvider()
  }
  @Test func `S0 3, CFG-2: the delegate is set before any report, with its queue`() throws { try Checklist.delegateFirst() }
  @Test func `S0 4, PUSH-2: every VoIP push is reported; one that is not ends the app`() throws {
    try Checklist.reportsBeforeReturn()
  }
  @Test func `S0 5, ACT-1: every action is fulfilled or failed`() throws { try Checklist.actionsAreCompleted() }
  @Test func `S0 6, AUD-2: audio starts in didActivate`() throws { try Checklist.startsWhenActivated() }
  @Test func `S0 7, AUD-2: audio stops in didDeactivate`() throws { try Checklist.stopsWhenDeactivated() }
  @Test func `S0 8, AUD-1: playAndRecord, voiceChat, Bluetooth; setActive is never called`() throws {
    try Checklist.categoryAndNoSetActive()
  }
  @Test func `S0 9, TOK-1: the token goes to the server at every update`() throws { try Checklist.tokenAtEveryUpdate() }
  @Test func `S0 10, PUSH-1: PKPushRegistry at every launch`() throws { try Checklist.registryAtEveryLaunch() }
  @Test func `S0 11, DIR-1: directory numbers are integers with country code, ascending`() async throws {
    try await Checklist.numbersAscend()
  }
  @Test func `S0 12, INC-2: the update has handle, name and the call's id`() throws { try Checklist.updateIsWhole() }
  @Test func `S0 13, OUT-3: connecting and connected are reported when they happen`() throws { try Checklist.datesAreReal() }

  // MARK: S1, 21 points

  @Test func `S1 2, CFG-1: exactly one CXProvider, made at launch, kept for the life of the app`() throws {
    try Checklist.oneProvider()
  }
  @Test func `S1 3, CFG-2: the delegate is set before any report, with its queue`() throws { try Checklist.delegateFirst() }
  @Test func `S1 4, PUSH-3, PUSH-4: the method with metadata: mustReport is obeyed; the older method is kept`() throws {
    try Checklist.mustReportIsObeyed()
  }
  @Test func `S1 5, PUSH-2: every push that must be reported is`() throws { try Checklist.reportsBeforeReturn() }
  @Test func `S1 6, SRV-2: apns-expiration is 0`() throws { try Checklist.pushesDoNotWait() }
  @Test func `S1 7, SRV-3: one push for a call; all that follows comes by the connection`() throws {
    try Checklist.onePushForACall()
  }
  @Test func `S1 8, ACT-1: every action is fulfilled or failed`() throws { try Checklist.actionsAreCompleted() }
  @Test func `S1 9, ANS-1: an answer is fulfilled when the call is connected, not before`() throws { try Checklist.answerWaits() }
  @Test func `S1 10, AUD-2: audio starts in didActivate`() throws { try Checklist.startsWhenActivated() }
  @Test func `S1 11, AUD-2: audio stops in didDeactivate`() throws { try Checklist.stopsWhenDeactivated() }
  @Test func `S1 12, AUD-1: playAndRecord, voiceChat, Bluetooth; setActive is never called`() throws {
    try Checklist.categoryAndNoSetActive()
  }
  @Test func `S1 13, TOK-1: the token goes to the server at every update`() throws { try Checklist.tokenAtEveryUpdate() }
  @Test func `S1 14, PUSH-1: PKPushRegistry at every launch`() throws { try Checklist.registryAtEveryLaunch() }
  @Test func `S1 15, DIR-3: the directory is loaded before; nothing is looked up when a call comes`() async throws {
    try await Checklist.nothingIsLookedUp()
  }
  @Test func `S1 16, DIR-1: directory numbers are integers with country code, ascending`() async throws {
    try await Checklist.numbersAscend()
  }
  @Test func `S1 17, DIR-4: status, then settings, then reload`() async throws { try await Checklist.statusSettingsReload() }
  @Test func `S1 18, INC-2: the update has handle, name and the call's id`() throws { try Checklist.updateIsWhole() }
  @Test func `S1 19, OUT-3: connecting and connected are reported when they happen`() throws { try Checklist.datesAreReal() }
  @Test func `S1 20, MID-3, MID-4: translation by the system's engine; a mute then is of the microphone only`() throws {
    try Checklist.muteIsOfTheMicrophone()
  }
}

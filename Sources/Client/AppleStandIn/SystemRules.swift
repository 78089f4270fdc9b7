import TrunklineBytes

/// What the stand-in enforces, with a setting for each point that Apple's documentation leaves open. Sources:
/// docs/design/apple-stand-in.md.
public struct SystemRules: Sendable, Equatable {
  /// R3: when the metadata of a push requires a report.
  public enum MustReport: String, Sendable, Equatable, Codable {
    /// Always, as before iOS 26.4.
    case always
    /// Not while the app is in the foreground or has a call.
    case unlessActive
    /// One push of two, whatever the app does: Apple states that the criteria may change.
    case atRandom
  }
  /// R1: the process is killed for a push that was not reported when its delegate method returned; false: only a violation is
  /// recorded.
  public var killsUnreported = true
  /// R1: when the push is checked again, for an app whose delegate has not returned.
  public var reportTime: Duration = .seconds(7)
  /// R2: kills after which no push is delivered until the app is installed again. The number is not documented.
  public var killsBeforeSilence = 3
  public var mustReport = MustReport.always
  /// R3: false: iOS before 26.4, which calls the older method of the push delegate, without metadata; each push must be reported.
  public var hasPushMetadata = true
  /// R5: Focus and the block list, which refuse a report.
  public var doesNotDisturb = false
  public var blocked: Set<String> = []
  /// R6: the time limit of an action. From one independent port; not documented.
  public var answerTime: Duration = .seconds(60)
  public var startTime: Duration = .seconds(600)
  public var actionTime: Duration = .seconds(5)
  /// R8: from the fulfilled answer or start to `didActivate`; nil: it is never called.
  public var activationTime: Duration? = .milliseconds(50)
  /// R9: `didActivate` is called after an unhold.
  public var activatesAfterUnhold = true
  /// R11: the system also performs an end action for a call whose end the app reported.
  public var repeatsEnds = false
  /// R12: from the provider's first use to `providerDidBegin`; calls before it wait.
  public var beginTime: Duration = .milliseconds(20)
  /// R13: the system unmutes a call that was muted before it was connected.
  public var unmutesOnConnect = false
  /// R16: how long the system lets a call ring.
  public var ringTime: Duration = .seconds(60)
  /// R7.
  public var maximumCallGroups = 2

  /// R15: the app has the entitlement for notification filtering.
  public var hasFilteringEntitlement = true
  /// R20: `setCategory` while the session is active clears the speaker override (telnyx-webrtc-ios#377, stream-video-js#2219).
  public var categoryClearsSpeaker = true
  /// R21 ?: the app's background modes have `voip`; without it a report is accepted, then the provider is reset. One report only.
  public var hasVoIPBackgroundMode = true
  /// R22 ?: a push's report off the delegate's thread shows nothing on a locked screen (LiveKit's CallKit sample).
  public var hidesReportsOffQueue = true
  /// R23: the user's earlier decision; a locked screen shows no prompt (mattermost-mobile#10075, Signal-iOS#4827).
  public var microphone = SystemMachine.Permission.granted
  /// R24 ?: pairs of unmute and mute that the system adds when a call connects or the app enters the foreground (Stream's CallKit
  /// service).
  public var muteBursts = 0
  /// R25: what a headset's button does besides answering a second call (Apple forum 794277).
  public var headsetFault: HeadsetFault?
  public enum HeadsetFault: String, Sendable, Equatable, Codable { case endsAnswered, unholdsBoth }
  /// R26: of two ringing calls the first is shown, and answering one ends the other (Apple forum 775874).
  public var answerEndsOtherRinging = true
  /// R27: how long sockets live in the background without a call; at most 30 s (wire-ios#4000). Nil: without limit.
  public var socketLife: Duration? = .seconds(30)
  /// R27 ?: number of pushes in the background after which sockets fail for `socketsFailTime` (Apple forum 775506). Nil: never.
  public var wakesUntilSocketsFail: Int?
  public var socketsFailTime: Duration = .seconds(60)
  /// R28: how long the sample rate is 0 Hz when the route changes (client-sdk-swift#577). Nil: not at all.
  public var zeroRateTime: Duration? = .milliseconds(100)
  /// R29: the user has unlocked the phone since it was switched on; before that the keychain is closed.
  public var isUnlockedOnce = true

  public init() {}
  /// The strictest behaviour that was observed.
  public static let strict = SystemRules()
}

/// A step of a call, for timelines, logs and the times of its record. In the order in which a warm incoming call reaches them.
public enum CallStage: String, Sendable, CaseIterable, Codable {
  /// INVITE received (incoming) or `call.start` accepted (outgoing).
  case start
  /// The verifier of the caller's Identity has answered, or did not in time.
  case verified
  /// The call's webhook has answered, or the fallback applies.
  case routed
  /// `call.offer` handed to the first device.
  case offered
  /// A push was sent; the service accepted it, or did not; the device connected after its push.
  case pushed, pushAccepted, pushFailed, woken
  /// A device was woken through its socket at another node.
  case wakeSent
  /// First `call.ringing` of a device.
  case deviceRinging
  /// 180 sent, or received on an outgoing call.
  case ringing
  /// `call.prepare` applied.
  case prepared
  /// The user's tap: receipt of `call.answer` less its `ageMs`.
  case tap
  /// `call.answer` claimed the lock.
  case answered
  /// A pair is nominated on the winner's leg.
  case ice
  /// Fingerprint matched, keys installed.
  case dtls
  /// `media.ready` of the current generation.
  case mediaReady
  /// All conditions of the media gate hold.
  case gateOpen
  /// Our INVITE left (outgoing).
  case inviteSent
  /// 100 and 183 or another provisional response of the trunk.
  case trying, progress
  /// 200 of a number that a program's call reaches before its user.
  case numberAnswered
  /// 200 sent (incoming) or received (outgoing); in a call with `numberAnswered`, both sides have media.
  case connected
  /// ACK received (incoming).
  case acknowledged
  /// `media.active{playout}`.
  case mediaActive
  /// The first frame that is not silent, each way.
  case firstAudioToApp, firstAudioToTrunk
  /// The trunk refused our re-INVITE, or a digit by INFO.
  case offerRefused, digitRefused
  case heldByTrunk, resumedByTrunk, heldByApp, resumedByApp
  /// In a group with other calls of the device, and no longer; translated by the device, and no longer.
  case grouped, ungrouped, translating, translated
  /// `media.restart` applied; app leg silent and back; trunk silent and back.
  case restarted, appSilent, appBack, trunkSilent, trunkBack
  /// The app's packets come from another address, and packets for it are sent there; the packets of one side of the app's leg do
  /// not arrive.
  case appMoved, appOneWay
  /// A REFER was accepted; the call continues on another leg; the transfer failed.
  case transferring, transferred, transferFailed
  /// 181: the far side of an outgoing call has diverted it.
  case forwarded
  /// No device answers an incoming call: a diversion may begin.
  case noDeviceAnswered
  /// A diversion begins: to another user, a number, a recording; the number rings, answers, refuses.
  case diverting, divertedRinging, divertedAnswered, divertedFailed
  /// A recording begins.
  case recording
  /// CANCEL or BYE, received or sent.
  case cancel, bye
  case ended
}

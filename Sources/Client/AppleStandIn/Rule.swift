extension SystemMachine {
  /// The rules by name; docs/design/apple-stand-in.md describes each.
  public enum Rule: String, Sendable, Codable, CaseIterable {
    case r1 = "R1", r2 = "R2", r3 = "R3", r4 = "R4", r5 = "R5", r6 = "R6", r7 = "R7", r8 = "R8", r9 = "R9", r10 = "R10"
    case r11 = "R11", r12 = "R12", r13 = "R13", r14 = "R14", r15 = "R15", r16 = "R16", r17 = "R17", r18 = "R18", r19 = "R19"
    case r20 = "R20", r21 = "R21", r22 = "R22", r23 = "R23", r24 = "R24", r25 = "R25", r26 = "R26", r27 = "R27", r28 = "R28"
    case r29 = "R29", r30 = "R30", r31 = "R31"
  }
}

extension SystemMachine.Rule {
  /// The rule in a sentence; its sources: docs/design/apple-stand-in.md.
  public var title: String {
    switch self {
    case .r1: "a push that must be reported is, before its method returns; else the app is killed"
    case .r2: "after three kills no push is delivered"
    case .r3: "a push says whether it must be reported; always in the background without a call"
    case .r4: "a report of a UUID that exists is refused with error 2, and counts as a report"
    case .r5: "Focus and the block list refuse a report with error 3 or 4, and nothing is shown"
    case .r6: "an action has a time: answer 60 s, start 600 s, others 5 s; then it is timed out"
    case .r7: "actions run one after the other, as asked for; a request is refused with its code"
    case .r8: "the session is activated after a fulfilled answer or start, deactivated after the last call"
    case .r9: "a cellular call holds, its end resumes nothing; an unhold may lack the activation"
    case .r10: "the end of a call is reported once; nothing is asked of it later"
    case .r11: "any way out may come as an end action as well"
    case .r12: "providerDidBegin comes before the first action"
    case .r13: "the system may unmute when a call connects"
    case .r14: "the Call Directory accepts entries in order, without duplicates, up to a limit"
    case .r15: "only a notification service extension with the entitlement makes a VoIP push"
    case .r16: "a call that rings for a minute is ended"
    case .r17: "Recents calls again only with a supported kind of handle"
    case .r18: "callbacks come on the delegate's queue"
    case .r19: "delegates are weak"
    case .r20: "setCategory in a call switches the speaker off"
    case .r21: "without the background mode voip the provider is reset after a report"
    case .r22: "a push's report off the delegate's thread may show nothing"
    case .r23: "no prompt for the microphone on a locked screen, and capture is silent"
    case .r24: "bursts of mute and unmute come at connect and in the foreground"
    case .r25: "a second call is answered after the first one was held or ended"
    case .r26: "of two that ring the first is shown; answering one ends the other"
    case .r27: "sockets die within 30 s in the background without a call"
    case .r28: "a new route has its own rate (48, 16, 8 kHz), after a moment of 0 Hz"
    case .r29: "the keychain is closed from a restart to the first unlock"
    case .r30: "one CXProvider, alive as long as the app"
    case .r31: "the delegate is set before the first report"
    }
  }

  /// The part of the rule that is a single, undated or derived report: a `?` in the table. Nil: none.
  public var uncertainty: String? {
    switch self {
    case .r2: "the number of kills"
    case .r4: "that a refused report counts"
    case .r6: "the times"
    case .r16: "the minute"
    case .r21: "the reset"
    case .r22: "that nothing is shown"
    case .r24: "the bursts"
    case .r27: "that new sockets fail after many wakes"
    default: nil
    }
  }

  /// The part of the rule that is still uncertain once a trace confirms the rest. Nil: none.
  var remainingUncertainty: String? { self == .r27 ? uncertainty : nil }

  /// Why no trace of an app's process can show the rule at all. Nil: a trace can show it.
  public var unseen: String? {
    switch self {
    case .r14: "the Call Directory extension is a process of its own; it keeps its own outcomes"
    case .r19: "a released delegate gets no callback, and writes nothing"
    default: nil
    }
  }
}

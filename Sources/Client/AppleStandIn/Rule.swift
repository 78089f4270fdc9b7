extension SystemMachine {
  /// The rules by name; docs/design/apple-stand-in.md describes each.
  public enum Rule: String, Sendable, Codable, CaseIterable {
    case r1 = "R1", r2 = "R2", r3 = "R3", r4 = "R4", r5 = "R5", r6 = "R6", r7 = "R7", r8 = "R8", r9 = "R9", r10 = "R10"
    case r11 = "R11", r12 = "R12", r13 = "R13", r14 = "R14", r15 = "R15", r16 = "R16", r17 = "R17", r18 = "R18", r19 = "R19"
    case r20 = "R20", r21 = "R21", r22 = "R22", r23 = "R23", r24 = "R24", r25 = "R25", r26 = "R26", r27 = "R27", r28 = "R28"
    case r29 = "R29"
    /// One `CXProvider`, alive as long as the app.
    case cfg1 = "CFG-1"
    /// The delegate is set before the first report.
    case cfg2 = "CFG-2"
  }
}

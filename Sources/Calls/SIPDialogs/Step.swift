import TrunklineBytes

/// One step of the user agent: its time, and the outputs that its parts append to: messages, events, deadlines, counters. A part
/// gets it with each input, so it never sees the user agent.
struct Step {
  var now = Instant.zero
  /// The caller's while `handle` runs.
  var output = UserAgent.Output()
  var timers = DeadlineQueue<TimerKey>()
  var counters = Statistics()

  mutating func send(_ bytes: [UInt8], _ flow: Flow) {
    output.messages.append(UserAgent.Output.Message(bytes: bytes, flow: flow))
  }
  /// A message that was sent before.
  mutating func sendAgain(_ bytes: [UInt8], _ flow: Flow) {
    counters.retransmissionsSent += 1
    send(bytes, flow)
  }
  mutating func emit(_ event: UserAgent.Event) { output.events.append(event) }
}

import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import TrunklineClientMachines

/// A session's numbers alone; `ClientSessionTests` has them in the session.
@Suite struct NumberedMessagesTests {
  private func request(_ number: UInt64, call: UInt64? = nil) -> NumberedMessages.Message {
    NumberedMessages.Message(message: .deviceDel, id: id(number), call: call.map(id))
  }
  /// A message without an answer.
  private func notification(_ message: ClientMessage = .callRinging(CallRinging()), call: UInt64) -> NumberedMessages.Message {
    NumberedMessages.Message(message: message, call: id(call))
  }
  private func asked(_ numbers: UInt64...) -> NumberedMessages {
    var messages = NumberedMessages()
    for number in numbers {
      messages.ask(request(number))
      holds(messages.number(request(number))?.seq == Int(number))
    }
    return messages
  }

  @Test func `numbers are received in sequence; a repeated one and one after a gap change nothing`() {
    var messages = NumberedMessages()
    holds(messages.ack == nil && messages.received(2) == .gap && messages.received(0) == .repeated && messages.ack == nil)
    holds(messages.received(1) == .next && messages.received(1) == .repeated && messages.received(3) == .gap)
    holds(messages.received(2) == .next && messages.ack == 2 && messages.lastSeen == 2)
  }

  @Test func `a message is kept until it is acked, and a request until it is answered, in any order`() {
    var messages = asked(1, 2)
    #expect(!messages.isEmpty)
    messages.acked(0)
    messages.acked(9)
    messages.acked(1)
    holds(!messages.isEmpty && messages.answered(id(2))?.id == id(2) && messages.answered(id(2)) == nil)
    holds(messages.answered(id(7)) == nil && messages.answered(nil) == nil)
    holds(messages.answered(id(1)) != nil && messages.isEmpty)
    messages = asked(1)
    holds(messages.answered(id(1)) != nil && !messages.isEmpty, "answered before its ack")
  }

  @Test func `requests and messages are limited`() {
    var messages = NumberedMessages()
    for number in 1...UInt64(Limits.openRequests + 1) { messages.ask(request(number)) }
    holds(messages.isFull && messages.answered(id(UInt64(Limits.openRequests + 1))) == nil)
    for _ in 0..<Limits.outboxMessages { holds(messages.number(notification(call: 1)) != nil) }
    holds(messages.number(notification(call: 1)) == nil)
    messages.acked(1)
    holds(messages.number(notification(call: 1))?.seq == Limits.outboxMessages + 1)
  }

  @Test
  func `after a resume the messages from the gateway's number on are repeated, and unanswered requests whose message was acked`()
  {
    var messages = asked(1, 2, 3)
    messages.acked(1)
    let (kept, repeated) = messages.resumed(from: 3)
    #expect(kept.map(\.seq) == [3] && repeated.map(\.id) == [id(1), id(2)])
    holds(messages.number(repeated[0])?.seq == 4, "a new number")
    holds(asked().isEmpty)
  }

  @Test func `a fresh session numbers from 1: open requests, and what its live calls need, are sent again`() {
    var messages = asked(1, 2)
    for call in [UInt64(8), 9] { _ = messages.number(notification(call: call)) }
    _ = messages.number(notification(.callEnd(CallEnd(reason: .localEnd)), call: 8))
    _ = messages.received(1)
    _ = messages.answered(id(1))
    let again = messages.renumber(live: [id(8)])
    #expect(again.map(\.id) == [id(2), nil] && again.last?.call == id(8) && messages.ack == nil)
    holds(messages.number(again[0])?.seq == 1 && messages.received(1) == .next)
  }

  @Test func `a request of a call is open until its answer`() {
    var messages = asked(1)
    #expect(!messages.hasCallRequest)
    messages.ask(request(2, call: 9))
    holds(messages.hasCallRequest && messages.answered(id(2))?.call == id(9) && !messages.hasCallRequest)
  }
}

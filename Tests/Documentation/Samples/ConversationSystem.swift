import Foundation
import Synchronization
import TrunklineCallKit

/// What the sample needs of LiveCommunicationKit's `ConversationManager`, so that it compiles where that is not.
protocol Conversations: Sendable {
  func report(_ call: UUID, from name: String, _ reported: @escaping @Sendable ((any Error)?) -> Void)
  func ended(_ call: UUID)
  func connected(_ call: UUID)
  func perform(_ button: ConversationButton, _ call: UUID)
}
/// An action of the system's: `JoinConversationAction` and its like.
enum ConversationButton: Sendable { case join, end, pause(Bool), mute(Bool) }
protocol ConversationAction: Sendable {
  var button: ConversationButton { get }
  var conversationUUID: UUID { get }
  func fulfill()
  func fail()
}

/// Calls on LiveCommunicationKit's screens.
final class ConversationSystem: CallSystem {
  private struct State {
    var queue: DispatchQueue?
    var events: (@Sendable (CallSystemEvent) -> Void)?
    var actions: [Int: any ConversationAction] = [:]
    var last = 0
  }
  private let state = Mutex(State())
  private let conversations: any Conversations
  init(_ conversations: any Conversations) { self.conversations = conversations }

  func attach(to queue: DispatchQueue, _ events: @escaping @Sendable (CallSystemEvent) -> Void) {
    state.withLock { ($0.queue, $0.events) = (queue, events) }
  }

  func perform(_ request: CallSystemRequest) {
    switch request {
    case .report(let call, let caller, _):
      conversations.report(call.uuid, from: caller.n ?? caller.h) { [weak self] error in
        self?.tell(.reported(call, error.map { .other(($0 as NSError).code) }))
      }
    case .reportEnded(let call, _): conversations.ended(call.uuid)
    case .reportConnected(let call, _): conversations.connected(call.uuid)
    case .request(let request):
      switch request {
      case .answer(let call): conversations.perform(.join, call.uuid)
      case .end(let call): conversations.perform(.end, call.uuid)
      case .hold(let call, let isOn): conversations.perform(.pause(isOn), call.uuid)
      case .mute(let call, let isOn): conversations.perform(.mute(isOn), call.uuid)
      case .start, .digits, .group: tell(.requestRefused(request))  // not in this sample
      }
    case .complete(let id, let isDone):
      let action = state.withLock { $0.actions.removeValue(forKey: id.raw) }
      if isDone { action?.fulfill() } else { action?.fail() }
    case .update, .reportConnecting, .configureAudio: break
    }
  }

  /// From `conversationManager(_:perform:)`.
  func perform(_ action: any ConversationAction) {
    let id = state.withLock { state in
      state.last += 1
      state.actions[state.last] = action
      return state.last
    }
    let call = action.conversationUUID
    switch action.button {
    case .join: tell(.perform(.init(id), .answer(.init(call)), timeout: nil))
    case .end: tell(.perform(.init(id), .end(.init(call)), timeout: nil))
    case .pause(let isOn): tell(.perform(.init(id), .hold(.init(call), isOn), timeout: nil))
    case .mute(let isOn): tell(.perform(.init(id), .mute(.init(call), isOn), timeout: nil))
    }
  }

  /// From `conversationManager(_:didActivate:)` and `…(_:didDeactivate:)`.
  func audio(isActive: Bool) { tell(isActive ? .audioActivated : .audioDeactivated) }

  private func tell(_ event: CallSystemEvent) {
    let (queue, events) = state.withLock { ($0.queue, $0.events) }
    queue?.async { events?(event) }
  }
}

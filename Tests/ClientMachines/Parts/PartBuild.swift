import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import TrunklineClientMachines

// One part of the phone's machine alone: each event is made by hand, and what it gave is compared.

func seconds(_ count: Double) -> Instant { .zero + .nanoseconds(Int64(count * 1e9)) }
func id(_ number: UInt64) -> Identifier { Identifier(high: 7, low: number) }

func push(_ call: UInt64, at gateway: String? = nil) -> PhoneMachine.Push {
  PhoneMachine.Push(call: id(call), caller: Handle(k: .phone, h: "+15550001"), wake: "w\(call)", gateway: gateway)
}

/// As `#expect`, for a condition that changes a part: the macro cannot call mutating functions.
func holds(_ condition: Bool, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) {
  #expect(condition, comment, sourceLocation: sourceLocation)
}

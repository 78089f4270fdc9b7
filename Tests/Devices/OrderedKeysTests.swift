import Testing
import TrunklineBytes

@testable import Devices

@Suite struct OrderedKeysTests {
  @Test(arguments: 1...8 as ClosedRange<UInt64>) func `holds what a sorted set holds, and a walk can begin anywhere`(seed: UInt64)
  {
    let random = RandomSource.seeded(seed)
    var (keys, model) = (OrderedKeys<Int>(), Set<Int>())
    for _ in 0..<6_000 {
      let key = Int(random.next() % 3_000)
      if random.next() % 3 == 0 {
        let (isGone, wasThere) = (keys.remove(key), model.remove(key) != nil)
        #expect(isGone == wasThere)
      } else {
        let (isNew, wasNew) = (keys.insert(key), model.insert(key).inserted)
        #expect(isNew == wasNew)
      }
    }
    let sorted = model.sorted()
    #expect(keys.count == sorted.count && keys.first == sorted.first)
    for start in [nil, -1, 0, 1_500, sorted[sorted.count / 2], sorted.last, 3_001] as [Int?] {
      var (walk, found) = (keys.walk(after: start), [Int]())
      while let key = walk.next() { found.append(key) }
      #expect(found == sorted.filter { $0 > start ?? .min })
    }
    for key in sorted { keys.remove(key) }
    var walk = keys.walk(after: nil)
    let last = walk.next()
    #expect(keys.isEmpty && last == nil && keys.first == nil)
  }
}

package exec

// crc64 is the checksum of Redis's payloads: the polynomial of Jones,
// reflected, from 0, without a final change. (hash/crc64 inverts both ends.)
func crc64(data []byte) uint64 {
	var sum uint64
	for _, b := range data {
		sum ^= uint64(b)
		for range 8 {
			if sum&1 != 0 {
				sum = sum>>1 ^ crcPolynomial
			} else {
				sum >>= 1
			}
		}
	}
	return sum
}

const crcPolynomial = 0x95ac9329ac4bc9b5

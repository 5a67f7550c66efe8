-- set: adds entries, or changes those that are there.
--
-- ARGV   id, value (see ENTRIES), and so on
-- Returns  how many were new or have changed
-- Errors   WRONGTYPE if a key is not a dictionary's
-- Cost     O(length of the term + log n) for each entry, with about 6 commands; now and then one that moves LEAF rows

local changed = 0
for i = 1, #ARGV, 2 do
  if put(ARGV[i], ARGV[i + 1]) then changed = changed + 1 end
end
return changed

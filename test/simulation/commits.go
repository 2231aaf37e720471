// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
)

// anyFile changes one file of a layer's folder.
func (s *simulation) anyFile(layer string, do func(*file)) bool {
	f := s.folder(layer)
	if len(f.files) == 0 {
		return false
	}
	i := s.random.IntN(len(f.files))
	s.edit(layer, func(f *folder) { do(&f.files[i]) })
	return true
}

func changeValue(s *simulation, layer string) bool {
	return s.anyFile(layer, func(f *file) { f.value = s.value() })
}

func commitFailing(s *simulation, layer string) bool {
	return s.anyFile(layer, func(f *file) { f.value, f.quality = s.value(), fails })
}

func commitRefused(s *simulation, layer string) bool {
	return s.anyFile(layer, func(f *file) { f.value, f.quality = s.value(), refused })
}

func addRelease(s *simulation, layer string) bool {
	if len(s.folder(layer).files) > 5 {
		return false
	}
	s.edit(layer, func(f *folder) { f.missing = false; f.files = append(f.files, s.newFile(*f)) })
	return true
}

// take removes a file from a folder, and what depends on it no longer does.
func (f *folder) take(i int) file {
	taken := f.files[i]
	f.files = slices.Delete(f.files, i, i+1)
	for j := range f.files {
		if f.files[j].after == taken.name {
			f.files[j].after = ""
		}
		if f.files[j].reads == taken.name {
			f.files[j].reads = ""
		}
	}
	taken.after, taken.reads = "", ""
	return taken
}

func removeRelease(s *simulation, layer string) bool {
	count := len(s.folder(layer).files)
	if count < 2 {
		return false
	}
	s.edit(layer, func(f *folder) { f.take(s.random.IntN(count)) })
	return true
}

// move takes a file to another layer's folder, in one commit where they have one
// repository.
func (s *simulation) move(from string, change func(*file)) bool {
	source := s.repositoryOf(from)
	to := s.folderOf(pick(s, slices.DeleteFunc(slices.Clone(s.people.names), func(name string) bool { return name == from })))
	from = s.folderOf(from)
	if len(source.folders[from].files) == 0 || from == to {
		return false
	}
	f := source.folders[from].clone()
	taken := f.take(s.random.IntN(len(f.files)))
	change(&taken)
	source.folders[from] = f
	target := s.repositoryOf(to)
	g := target.folders[to].clone()
	g.missing = false
	g.files = append(g.files, taken)
	target.folders[to] = g
	s.note("   %s to %s", taken.name, to)
	if target != source {
		s.commit(target.name)
	}
	s.commit(source.name)
	return true
}

func moveRelease(s *simulation, layer string) bool { return s.move(layer, func(*file) {}) }

func moveAndRename(s *simulation, layer string) bool { return s.move(layer, s.rename) }

func (s *simulation) rename(f *file) {
	s.people.used++
	f.name = fmt.Sprintf("%s%d", f.name[:1], s.people.used)
}

func renameRelease(s *simulation, layer string) bool {
	files := s.folder(layer).files
	if len(files) == 0 {
		return false
	}
	i := s.random.IntN(len(files))
	s.edit(layer, func(f *folder) {
		was := f.files[i].name
		s.rename(&f.files[i])
		for j := range f.files {
			if f.files[j].after == was {
				f.files[j].after = f.files[i].name
			}
			if f.files[j].reads == was {
				f.files[j].reads = f.files[i].name
			}
		}
	})
	return true
}

func listTwice(s *simulation, layer string) bool {
	files := s.folder(layer).files
	if len(files) == 0 {
		return false
	}
	to := pick(s, s.people.names)
	if s.folderOf(to) == s.folderOf(layer) {
		return false
	}
	copied := pick(s, files)
	copied.after, copied.reads = "", ""
	if s.folder(to).find(copied.name) >= 0 {
		return false
	}
	s.edit(to, func(f *folder) { f.missing = false; f.files = append(f.files, copied) })
	return true
}

func emptyFolder(s *simulation, layer string) bool {
	if len(s.folder(layer).files) == 0 {
		return false
	}
	s.edit(layer, func(f *folder) { f.files = nil })
	return true
}

func removeMost(s *simulation, layer string) bool {
	if len(s.folder(layer).files) < 5 {
		// It is a large layer first.
		s.edit(layer, func(f *folder) {
			f.missing = false
			for len(f.files) < 6 {
				f.files = append(f.files, s.newFile(*f))
			}
		})
		return true
	}
	s.edit(layer, func(f *folder) { f.files = f.files[:1]; f.files[0].after, f.files[0].reads = "", "" })
	return true
}

func loseFolder(s *simulation, layer string) bool {
	if s.folder(layer).missing {
		return false
	}
	s.edit(layer, func(f *folder) { *f = folder{missing: true} })
	return true
}

func breakFile(s *simulation, layer string) bool {
	f := s.folder(layer)
	if f.broken || f.missing {
		return false
	}
	s.edit(layer, func(f *folder) { f.broken = true })
	return true
}

// mendCommit makes the content of a folder good again.
func mendCommit(s *simulation, layer string) bool {
	s.edit(layer, func(f *folder) {
		f.broken = false
		for i := range f.files {
			if f.files[i].quality != good {
				f.files[i].quality, f.files[i].value = good, s.value()
			}
		}
	})
	return true
}

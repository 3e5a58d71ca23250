package directive

// WordsOf lists the words of a list, or of an enumeration.
func WordsOf(name, version string) []string {
	if words := wordsOf("list", name, version); words != nil {
		return words
	}
	return wordsOf("enum", name, version)
}
